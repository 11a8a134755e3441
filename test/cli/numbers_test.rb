# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/cli"
require "culet/text/size"

# Numbers and words that no machine can do anything with.
class CliNumbersTest < Minitest::Test
  HUGE = ["99999999999999999999", "9" * 400, "1e400", "0", "-1", "", "x"].freeze
  OPTIONS = { "compare" => %w[--runs --connections --duration --timeout --scale], "replay" => %w[--runs --timeout], "cow experiment" => %w[--runs --millions --timeout],
              "report" => %w[--pause-ms], "requires" => %w[--top], "requires --unused" => %w[--top], "strings" => %w[--top --wait], "cow" => %w[--every --for --max-private],
              "snapshot" => %w[--every --for --wait --limit], "trace" => %w[--limit] }.freeze

  OPTIONS.each do |verb, flags|
    flags.each do |flag|
      define_method(:"test_#{verb.tr(" -", "_")}#{flag.tr("-", "_")}_is_bounded") do
        HUGE.each { |text| assert_sentence(/#{flag} takes /, *verb.split, "#{flag}=#{text}", "1", status: 2) }
      end
    end
  end

  def test_seeds_and_counts_may_be_nought_but_are_bounded
    { %w[compare --seed] => "", %w[replay --seed] => "", %w[cow experiment --seed] => "", %w[cow --writes] => "" }.each_key do |words|
      [HUGE[0], HUGE[1], "-1", "x"].each do |text|
        assert_sentence(/#{words.last} takes a whole number from 0 to \d+, not /, *words[0...-1], "#{words.last}=#{text}", "1", status: 2)
      end
    end
  end

  # The sentence stays one that can be read.
  def test_a_long_number_is_not_repeated
    _, err, = culet("compare", "--runs", "9" * 100_000)
    assert_operator err.size, :<, 200
  end

  def test_a_size_that_no_address_reaches
    ["9" * 400, "99999999999999999999", "10000000000G", "0.5"].each { |text| assert_nil Culet::Text::Size.parse(text), text }
    assert_equal 80_000_000, Culet::Text::Size.parse("80MB")
  end

  WORDS = [["report", "\xFF"], ["report", "--out", "\xFF", "1"], ["map", "\xFF.snapshot"], ["\xFF"], ["help", "\xFF"], ["strings", "caf\xE9.json"], ["run", "--\xFF"],
           ["compare", "--allocators", "\xFF"], ["trace", "-o", "\xFF", "--", "ls"]].freeze

  def test_a_word_that_is_not_utf8_is_one_sentence
    [{}, { "LC_ALL" => "C" }].each do |env|
      out, err, status = run_culet("report", "caf\xE9", env: env)
      assert_equal ["", 2, 1], [out, status.exitstatus, err.lines.size], err
      assert_match(/\Aculet: the word "caf\\xE9" is not valid UTF-8/, err)
    end
    WORDS.each { |words| assert_sentence(/is not valid UTF-8/, *words, status: 2) }
    WORDS.each { |words| assert_sentence(/is not valid UTF-8/, *words.map { |word| word.dup.force_encoding(Encoding::US_ASCII) }, status: 2) }
  end

  # The user's command gets its bytes, and what is told of it can be read.
  def test_a_command_whose_words_are_not_utf8
    script = "print ARGV.first.bytes.inspect; $stdout.flush"
    [{}, { "LC_ALL" => "C" }].each do |env|
      out, err, status = run_culet("run", "--", RbConfig.ruby, "-e", script, "caf\xE9", env: NEUTRAL.merge(env))
      assert_equal ["[99, 97, 102, 233]", 0], [out, status.exitstatus], err
      { "requires" => "[99, 97, 102, 233]", "trace" => "[99, 97, 102, 233]", "compare --runs 1 --allocators glibc" => "" }.each do |words, expected|
        Dir.mktmpdir do |directory|
          out, err, status = run_culet(*words.split, "--out", "#{directory}/out", *("--json" unless words == "trace"), "--", RbConfig.ruby, "-e", script,
                                       "caf\xE9", env: NEUTRAL.merge(env))
          assert_equal [expected, 0], [out, status.exitstatus], err
          assert_empty err.lines.grep_v(%r{\Aculet: (wrote|\[1/1\]) })
        end
      end
    end
  end

  def test_names_of_files_are_utf8_in_any_locale
    directory = new_folder
    assert_culet_success("lib", "--out", "#{directory}/caf\u00e9", env: { "LC_ALL" => "C" })
    assert_equal ["caf\u00e9".b], Dir.children(directory).map(&:b)
  end

  # Where temporary files go, and where the command is called.
  def test_folders_that_are_not_utf8
    folder = File.join(new_folder, "caf\xE9").tap { |path| Dir.mkdir(path) }
    env = NEUTRAL.merge("TMPDIR" => folder)
    [%w[requires --], %w[requires --unused --], %w[strings --], %w[trace --]].each do |words|
      assert_culet_success(*words, RbConfig.ruby, "-e", "", env: env, chdir: folder)
    end
    assert_equal "#{folder}/lib.so\n", assert_culet_success("lib", "--link", "lib.so", chdir: folder).first
    with_program(RbConfig.ruby, "-e", "$kept = File.new(File.join(ARGV.first, 'open'), 'w'); #{WAITING}", folder, env: env) { |pid| assert_culet_success("doctor", pid) }
    _, err, status = run_culet("compare", "rack", env: env.merge("XDG_CACHE_HOME" => "#{folder}/open"))
    assert_equal 1, status.exitstatus
    assert_includes err.b, "the gems of the workload rack cannot be written: "
    out, err, = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/profile", "-e", "", env: env.merge("CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/missing/out"))
    assert_equal ["", "culet: the memory profile cannot be written: cannot write #{folder}/missing/out: no such file or directory\n"], [out, err]
  end

  def test_an_empty_word_is_wrong_usage
    %w[doctor report map cow snapshot strings diff].each { |verb| assert_sentence(/an argument is empty/, verb, "", status: 2) }
  end

  # `culet report $(pgrep x)` may name one twice.
  def test_a_process_that_is_named_twice_counts_once
    pid = Process.pid.to_s
    out, err, = culet("report", pid, pid, "0#{pid}", "--json")
    assert_equal Process.pid, JSON.parse(out)["pid"], err
    out, = culet("cow", pid, pid, "--json", "--writes", "0")
    assert_equal(1, JSON.parse(out)["processes"].count { |one| one["pid"] == Process.pid })
  end
end
