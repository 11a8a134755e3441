# frozen_string_literal: true

require "test_helper"
require "json"

# `culet cow experiment`, on real interpreters, with few strings.
class CowExperimentTest < Minitest::Test
  SMALL = ["--millions", "0.05", "--seed", "1"].freeze
  PROCESS_KEYS = %w[rss_bytes pss_bytes shared_bytes private_bytes].freeze

  def test_ruby_and_python_on_two_allocators
    document = experiment("--with", RbConfig.ruby, "--with", "python3", "--allocators", "glibc,culet", "--runs", "2")
    assert document["complete"]
    assert_equal 50_000, document["strings"]
    results = document["results"]
    assert_equal [%w[glibc culet]] * 2, results.map { |one| one["allocator"] }.each_slice(2).to_a
    assert_match(/\Aruby [\d.]+ on glibc\z/, results.first["contender"])
    assert_match(/\APython [\d.]+ on culet\z/, results.last["contender"])
    results.each { |result| result["runs"].each { |run| plausible(run) } }
    assert_equal [1, 2, 3, 4, 5, 6, 7, 8], results.flat_map { |one| one["runs"].map { |run| run["order"] } }.sort
    baselines = document["comparisons"].map { |one| one["baseline"] }.uniq
    assert_equal results.values_at(0, 1, 2).map { |one| one["contender"] }.sort, (baselines | [results[1]["contender"]]).sort
  end

  # What a collection in the parent does to the child's memory, and what dropping and changing strings does.
  def test_variants
    document = experiment("--variants", "all", "--warm", "both", "--allocators", "culet", "--runs", "1")
    results = document["results"].to_h { |one| [[one["key"], one["warm"]], one["runs"].first] }
    assert_equal %w[parent child frees mutates].product([false, true]).sort_by(&:to_s), results.keys.sort_by(&:to_s)
    results.each_value { |run| plausible(run) }
    own = %w[child mutates].to_h { |key| [key, results.fetch([key, true])["child_private_bytes"]] }
    assert_operator own["mutates"], :>, own["child"] + 200_000
  end

  def test_the_table
    out, = assert_culet_success("cow", "experiment", *SMALL, "--runs", "1", "--allocators", "glibc", "--with", "python3", env: NEUTRAL)
    assert_match(/^the parent collects$/, out)
    assert_match(/^Python [\d.]+ on glibc +\d/, out)
    assert_match(/^50,000 strings\./, out)
  end

  # A shell can do it as well.
  SHELL = <<~SH
    text=$(seq 2000)
    echo "phase built"; read -r line
    sleep 100 & child=$!
    echo "phase forked $child"; read -r line
    echo "phase first 0.25"; read -r line
    echo "phase second 0.5"; read -r line
    kill $child
  SH

  def test_a_script_of_ones_own
    with_script(SHELL) do |path|
      run = experiment("--with", "sh", "--script", path, "--allocators", "glibc", "--runs", "1")["results"].first["runs"].first
      assert_equal [0.25, 0.5], run.values_at("gc_first_seconds", "gc_second_seconds")
      plausible(run)
    end
  end

  # What goes wrong in a script is said with its own words, and nothing of it is left.
  def test_scripts_that_fail
    { "echo 'no such thing' >&2; exit 7" => /the program ended before phase built: no such thing/,
      "echo hello" => /the program printed "hello" instead of "phase built"/,
      "echo 'phase built'; read -r l; echo 'phase forked'; read -r l" => /phase forked has no process number/,
      "echo 'phase built'; read -r l; sleep 77 & echo \"phase forked $!\"; read -r l; echo 'phase first soon'; read -r l" => /phase first has no seconds/,
      "printf 'phase \\377\\n'" => /the program printed "phase \\xFF" instead of "phase built"/,
      "yes x | tr -d '\\n'" => /the program printed "x{200}" instead of "phase built"/,
      "printf 'phase'; sleep 77" => /the next phase was not reached within 1 seconds/,
      "sleep 78" => /the next phase was not reached within 1 seconds/ }.each do |script, sentence|
      with_script(script) do |path|
        out, err, status = run_culet("cow", "experiment", *SMALL, "--with", "sh", "--script", path, "--allocators", "glibc",
                                     "--runs", "1", "--timeout", sentence.source.include?("next phase") ? "1" : PATIENCE_SECONDS.to_s, env: NEUTRAL)
        assert_equal 1, status.exitstatus
        assert_match sentence, err
        assert_match(/^excluded: sh on glibc, the parent collects: /, out)
        assert_equal "culet: no contender completed a run; see the reasons above\n", err.lines.last
      end
    end
    refute(Dir.glob("/proc/[0-9]*/cmdline").any? do |file|
      File.binread(file).match?(/\Asleep\0007[78]\0/)
    rescue StandardError
      false
    end)
  end

  def test_interrupted
    words = %w[cow experiment --millions 0.2 --runs 500 --allocators glibc --json]
    with_started(*culet_command, *words, env: NEUTRAL, err: %i[child out]) do |pid, out|
      out.gets # the first run is done
      Process.kill(:INT, pid)
      rest = out.read
      assert_equal 130, await_end(pid).exitstatus
      assert_includes rest, "\"complete\":false"
      assert_includes rest, "culet: interrupted by SIGINT: the report has the results up to then"
    end
  end

  def test_wrong_usage
    { %w[--with nosuchprogram] => /there is no program nosuchprogram/,
      %w[--with sh] => /there is no script for sh: give one with --script/, %w[--variants all,x] => /there is no variant/,
      %w[--warm maybe] => /--warm takes no, yes or both/, %w[--millions 0] => /takes a number above 0/, %w[--runs 0] => /takes a whole number from 1 to/,
      %w[word] => /takes options only, not "word"/, ["--with", "ruby 'x"] => /has an unmatched quote/,
      %w[--allocators nosuch] => /no allocator "nosuch"/ }.each do |words, sentence|
      assert_sentence(sentence, "cow", "experiment", *words, status: 2)
    end
    { %w[--script /no/such.rb] => /there is no file/, %w[--out /no/where] => /cannot write/ }.each do |words, sentence|
      assert_sentence(sentence, "cow", "experiment", *words)
    end
  end

  private

  def experiment(*words)
    out, = assert_culet_success("cow", "experiment", *SMALL, "--json", *words, env: NEUTRAL)
    JSON.parse(out).tap { |document| assert_empty document["excluded"] }
  end

  def with_script(text)
    Dir.mktmpdir do |directory|
      File.write("#{directory}/script", text)
      yield "#{directory}/script"
    end
  end

  # The figures of one run fit each other.
  def plausible(run)
    assert_equal %w[built forked first second], run["phases"].keys
    assert_equal %w[parent], run["phases"]["built"].keys
    run["phases"].values.drop(1).each { |phase| assert_equal %w[parent child], phase.keys }
    run["phases"].values.flat_map(&:values).each do |one|
      assert_equal PROCESS_KEYS, one.keys
      assert_equal one["rss_bytes"], one["shared_bytes"] + one["private_bytes"]
      assert_operator one["pss_bytes"], :<=, one["rss_bytes"]
    end
    last = run["phases"]["second"]
    assert_equal last["child"]["private_bytes"], run["child_private_bytes"]
    assert_equal last.values.sum { |one| one["pss_bytes"] }, run["total_pss_bytes"]
    assert_operator run["gc_first_seconds"], :>=, 0
  end
end
