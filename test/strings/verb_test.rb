# frozen_string_literal: true

require_relative "strings_helper"

# The command line, and commands that it runs.
class StringsVerbTest < Minitest::Test
  include StringsHelper

  MANY = "$kept = Array.new(9000) { |i| 'a text of which there are thousands of' + ' copies' }"

  def test_wrong_usage
    { [] => /no process given/, %w[1 2] => /one process number, dump or command/,
      ["1", "--", "true"] => /one process number, dump or command/, ["--"] => /no command given/,
      ["1", "--trace"] => /--trace needs a command/, ["1", "--top", "0"] => /--top takes a whole number/,
      ["1", "--wait", "1h"] => /ten minutes/ }.each do |words, sentence|
      assert_sentence(sentence, "strings", *words, status: 2)
    end
  end

  def test_json_has_the_keys_that_others_rely_on
    folder = new_folder
    path = File.join(folder, "heap.json")
    File.write(path, dump(*["a text that is there twice and is long"] * 2))
    told = json("strings", path)
    assert_equal [2, 158, 79, 79], told.values_at("strings", "string_bytes", "duplicate_bytes", "shareable_bytes")
    assert_equal [{ "kind" => "duplicate", "count" => 2, "held_bytes" => 158, "gain_bytes" => 79 }],
                 told["groups"].map { |one| one.slice("kind", "count", "held_bytes", "gain_bytes") }
    assert_equal ["", "culet: wrote #{folder}/told.json\n", 0], culet("strings", path, "--json", "--out", File.join(folder, "told.json"))
    assert_equal told, JSON.parse(File.read(File.join(folder, "told.json")))
  end

  # Text of strings may be a password; without content there is none.
  def test_files_with_text_are_their_owner_s_alone
    folder = new_folder
    path = File.join(folder, "heap.json")
    File.write(path, dump(*["a text that is there twice and is long"] * 2))
    { [] => 0o600, ["--no-content"] => 0o644 }.each do |flags, mode|
      files = %w[page.html told.txt].map { |name| File.join(folder, "#{flags.size}-#{name}") }
      words = [Gem.ruby, "-e", "File.umask(0o022); exec(*ARGV)", *culet_command, "strings", path,
               "--html", files[0], "--out", files[1], *flags]
      assert_success(*words, env: TestHelper::NEUTRAL)
      assert_equal([mode] * 2, files.map { |file| File.stat(file).mode & 0o777 })
    end
  end

  # Slices have their text in common, so there may be more text than strings hold.
  def test_the_page_does_not_count_text_as_a_part_of_what_strings_hold
    folder = new_folder
    path, page = %w[heap.json page.html].map { |name| File.join(folder, name) }
    File.write(path, dump(*["a text that is there twice and is long"] * 2))
    assert_equal 0, culet("strings", path, "--html", page).last
    assert_includes File.read(page), "2 strings, 0.000 MB; 0.000 MB of text"
  end

  def test_the_report_on_a_terminal
    folder = new_folder
    path = File.join(folder, "heap.json")
    File.write(path, dump(*["a text that is there ten thousand times, more or less\e[2J"] * 10_000))
    out, err, status = culet("strings", path)
    assert_equal [0, ""], [status, err]
    assert_match(/10,000 strings, 0\.\d+ MB/, out)
    assert_match(/^sharing: sharing would save 9\d\d kB of 9\d\d kB \(100\.0 %\)/, out)
    assert_match(/"a text that is there ten thousand times.*10,000/, out)
    refute_includes out, "\e"
    assert_includes culet("strings", path, "--color").first, "\e[1m"
  end

  # However little they would free, who asks for so many groups gets them, and what is left out is said.
  def test_groups_that_are_small
    folder = new_folder
    path = File.join(folder, "heap.json")
    texts = Array.new(40) { |number| "a text that is there twice and is long, number #{number + 10}" }
    File.write(path, dump(*texts, *texts))
    out, = culet("strings", path)
    assert_match(/^40 groups of equal strings not shown, \S+ kB savable \(--top 30 shows more\)$/, out)
    out, = culet("strings", path, "--top", "30")
    assert_equal 30, out.scan(/^"a text that is there twice.* 2 +0\.\d +0\.1$/).size
    assert_match(/^10 groups of equal strings not shown, [\d.]+ \w+ savable \(--top 40 shows more\)$/, out)
    out, = culet("strings", path, "--top", "40", "--no-content")
    assert_equal 40, out.scan(/^49 bytes #(\h{8}) +2 /).uniq.size
    refute_match(/not shown/, out)
  end

  def test_a_command_at_its_end
    out, err, status = run_culet("strings", "--json", "--", RbConfig.ruby, "-e", "#{MANY}; puts :said; at_exit { $kept << 'done' }", env: TestHelper::NEUTRAL)
    assert_equal [true, "said\n"], [status.success?, err]
    told = JSON.parse(out)
    assert_operator group(told, "a text of which")["count"], :>=, 9000
    assert_match(/\Aprocess \d+\z/, told["source"])
    refute told["traced"]
  end

  def test_options_of_the_user_s_stay
    env = TestHelper::NEUTRAL.merge("RUBYOPT" => "-rset -W:no-deprecated")
    _, err, status = run_culet("strings", "--json", "--", RbConfig.ruby, "-e",
                               "puts ENV['RUBYOPT'].end_with?('-rset -W:no-deprecated'), defined?(Set), Warning[:deprecated]", env: env)
    assert_equal [true, "true\nconstant\nfalse\n"], [status.success?, err.sub("expression", "constant")]
  end

  def test_a_command_that_traces_tells_gems_and_files
    folder = new_folder
    File.write(File.join(folder, "job.rb"), "\n#{MANY}\n")
    out, err, status = run_culet("strings", "--trace", "--", RbConfig.ruby, "#{folder}/job.rb", env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    assert_match(/^by gem .*\n.*\nthe program +9,0\d\d/, out)
    assert_match(%r{most are from #{folder}/job\.rb:2}, out.gsub(/\s+/, " "))
  end

  def test_processes_of_a_command_and_how_it_ends
    script = "pid = fork { #{MANY}; exit }; Process.wait(pid); warn :over; exit 7"
    out, err, status = run_culet("strings", "--json", "--", RbConfig.ruby, "-e", script, env: TestHelper::NEUTRAL)
    assert_equal 7, status.exitstatus
    assert_match(/over\nculet: 1 more Ruby process of the command ended; the report covers one\nculet: the command ended with status 7/, err)
    told = JSON.parse(out)
    refute(told["groups"].any? { |one| one["sample"].to_s.include?("of which there are") })
  end

  # The shell's child is the one that has strings.
  def test_a_command_that_is_no_ruby_itself
    out, err, status = run_culet("strings", "--json", "--", "sh", "-c", "#{RbConfig.ruby} -e \"#{MANY.gsub("$", "\\$")}\"; true", env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    told = JSON.parse(out)
    assert_operator group(told, "a text of which")["count"], :>=, 9000
  end

  def test_a_command_without_ruby_or_time_to_tell
    _, err, status = run_culet("strings", "--", "true", env: TestHelper::NEUTRAL)
    assert_equal 1, status.exitstatus
    assert_match(/\Aculet: no Ruby process could be looked at: true ran none/, err)
    _, err, status = run_culet("strings", "--", RbConfig.ruby, "-e", "Process.kill(:KILL, Process.pid); sleep", env: TestHelper::NEUTRAL)
    assert_equal 137, status.exitstatus
    assert_match(/was killed by SIGKILL before culet could look at it$/, err)
    assert_sentence(/cannot run .*nothing-of-that-name/, "strings", "--", "nothing-of-that-name", status: 127)
    folder = new_folder
    File.write(File.join(folder, "job"), "#!/nonexistent/interpreter\n", perm: 0o755)
    assert_sentence(/cannot run .*job: .nonexistent.interpreter does not exist/, "strings", "--", File.join(folder, "job"), status: 127)
  end
end
