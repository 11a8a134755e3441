# frozen_string_literal: true

require "test_helper"
require_relative "run"
require_relative "part"

# The runner of all tests, on test files made for it.
class RunnerTest < Minitest::Test
  def setup = @directory = new_folder

  def test_counts_of_all_files_are_summed_in_the_last_line
    out, status = run_files({ "one" => class_of("One", "assert true", "assert_equal 1, 1"), "two" => class_of("Two", "skip 'not now'") })
    assert_predicate status, :success?, out
    assert_equal "3 runs, 2 assertions, 0 failures, 0 errors, 1 skips\n", out.lines.last
    %w[one two].each { |name| assert_equal 1, out.scan(/^# \S*#{name}_test\.rb \(\d+ s, \d+ s of processor time\)$/).size, out }
  end

  def test_failures_and_errors_are_told_again_at_the_end
    out, status = run_files({ "bad" => class_of("Bad", "assert_equal 41, 42", "raise 'no way'"), "good" => class_of("Good", "assert true") })
    assert_equal 1, status.exitstatus
    assert_equal "3 runs, 2 assertions, 1 failures, 1 errors, 0 skips\n", out.lines.last
    # After each of the two runs, and at the end.
    _, *told = out.split(/^# .*bad_test\.rb/)
    assert_equal 3, told.size
    told.each { |text| assert_match(/Expected: 41.*RuntimeError: no way|RuntimeError: no way.*Expected: 41/m, text) }
  end

  { "that is no Ruby" => ["def (", /syntax error/],
    "without a test" => ["require 'test_helper'", /Error: the file ran no test/],
    "that ends the process" => ["require 'test_helper'; class Ends < Minitest::Test; def test_it = exit!(0); end",
                                /Error: the file ended before its tests were done/],
    "that crashes" => ["require 'test_helper'; class Dies < Minitest::Test; def test_it = Process.kill(:KILL, $$); end",
                       /Error: the process was ended by SIGKILL/],
    "that fails at its end" => ["require 'test_helper'; Minitest.after_run { exit 3 }; class Fine < Minitest::Test; def test_it = assert(true); end",
                                /Error: the tests went well, but their process did not end well/] }.each do |name, (text, complaint)|
    define_method("test_a_file_#{name.tr(" ", "_")}_fails_the_run") do
      out, status = run_files({ "odd" => text })
      assert_equal 1, status.exitstatus, out
      assert_match complaint, out
      assert_match(/\A\d runs, \d assertions, 0 failures, 1 errors, 0 skips\n\z/, out.lines.last)
    end
  end

  def test_a_file_that_cannot_be_loaded_leaves_no_folder
    _, status = run_files({ "odd" => "require 'test_helper'\nraise 'no way'" })
    assert_equal 1, status.exitstatus
    assert_empty Dir["#{@directory}/culet-run*"]
  end

  # It passes where no other file runs, and where it has run before.
  def test_a_file_that_fails_is_run_once_more_alone_and_named
    mark = File.join(@directory, "mark").inspect
    chance = "File.exist?(#{mark}) ? assert_path_exists(#{mark}.sub('mark', 'other')) : (File.write(#{mark}, '') and flunk 'by chance')"
    other = "Timeout.timeout(PATIENCE_SECONDS) { sleep 0.01 until File.exist?(#{mark}) }; assert File.write(#{mark}.sub('mark', 'other'), '')"
    out, status = run_files({ "chance" => class_of("Chance", chance), "other" => "require 'timeout'\n#{class_of("Other", other)}" })
    assert_predicate status, :success?, out
    assert_match(/^Failed, and passed when run again alone: \S*chance_test\.rb\n2 runs, 2 assertions, 0 failures, 0 errors, 0 skips\n\z/, out)
  end

  def test_no_file_is_no_success
    out, status = run_files({})
    assert_equal [1, "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n"], [status.exitstatus, out]
  end

  def test_a_file_that_takes_too_long_is_ended
    out, status = run_files({ "long" => class_of("Long", "sleep 600") }, "limit: 1.5")
    assert_equal 1, status.exitstatus
    assert_match(/Error: the file was not done after 1\.5 s/, out)
  end

  # Two wait for each other; the third finds that both have ended.
  def test_two_run_at_a_time_and_those_that_must_be_alone_do_so_at_the_end
    in_folder = ->(name) { File.join(@directory, name).inspect }
    meet = lambda do |own, other|
      "File.write(#{in_folder[own]}, ''); Timeout.timeout(PATIENCE_SECONDS) { sleep 0.01 until File.exist?(#{in_folder[other]}) }; " \
        "assert true; File.write(#{in_folder["#{own}.done"]}, '')"
    end
    out, status = run_files({ "a" => "# Alone: it says so.\n#{class_of("Alone", *%w[b c].map { |name| "assert_path_exists #{in_folder["#{name}.done"]}" })}",
                              "b" => "require 'timeout'\n#{class_of("Beside", meet["b", "c"])}",
                              "c" => "require 'timeout'\n#{class_of("Companion", meet["c", "b"])}" })
    assert_predicate status, :success?, out
    assert_equal "4 runs, 4 assertions, 0 failures, 0 errors, 0 skips\n", out.lines.last
  end

  %w[TERM INT].each do |signal|
    define_method("test_#{signal.downcase}_ends_what_was_started_and_then_the_runner") do
      pids = File.join(@directory, "pids")
      body = "with_program('sh', '-c', 'echo up; sleep 600') { |pid| File.write(#{pids.inspect}, [Process.pid, pid].join(' ')); sleep 600 }"
      start_files({ "wait" => class_of("Wait", body) }) do |runner|
        started = assert_settles("the tests are started") { File.exist?(pids) && (words = File.read(pids).split).size == 2 && words.map(&:to_i) }
        Process.kill(signal, runner.pid)
        assert runner.join(PATIENCE_SECONDS), "the runner did not end"
        assert_equal Signal.list[signal], runner.value.termsig
        started.each { |pid| assert_settles("#{pid} is gone") { gone?(pid) } }
      end
    end
  end

  def test_parts_run_beside_the_files_and_count_where_they_fail
    out, status = run_files({ "one" => class_of("One", "assert true") }, parts("good" => "echo ok fine", "bad" => "echo not ok this; exit 3"))
    assert_equal [1, "1 runs, 1 assertions, 0 failures, 1 errors, 0 skips\n"], [status.exitstatus, out.lines.last]
    assert_match(/^# good \(\d+ s, 0 s of processor time\)\n  ok fine$/, out)
    assert_match(/^# bad\nnot ok this\n\nError: it ended with an error$/, out)
    out, status = run_files({ "one" => class_of("One", "assert true") }, parts("good" => "echo ok fine"))
    assert_equal [0, "1 runs, 1 assertions, 0 failures, 0 errors, 0 skips\n"], [status.exitstatus, out.lines.last]
  end

  def test_a_part_that_is_killed_fails_the_run
    out, status = run_files({ "one" => class_of("One", "assert true") }, parts("killed" => "kill -KILL $$"))
    assert_equal 1, status.exitstatus
    assert_match(/Error: the process was ended by SIGKILL/, out)
  end

  # What bin/test hands over.
  def test_the_parts_are_the_linters_and_every_folder_with_c_tests
    folders = Dir["*/Makefile", base: ROOT].select { |path| File.read(File.join(ROOT, path)).match?(/^test[: ]|^-include test/) }.map { |path| File.dirname(path) }
    parts = Runner::Part.all(slow: false)
    assert_equal folders.map { |folder| "make -C #{folder} test" }.push("bin/lint --quick").sort, parts.map(&:name).sort
    assert_equal ["bin/lint", *folders.map { |folder| "make -C #{folder} test-all" }].sort, Runner::Part.all(slow: true).map(&:name).sort
    parts.each { |part| assert File.executable?(part.command.first) || part.command.first == "make", part.name }
  end

  def test_recorded_times_are_of_files_that_are_there
    Runner::TestFile.recorded.each do |name, seconds|
      assert File.file?(File.join(ROOT, "test", name)), "#{name} is not there"
      assert_operator seconds, :>, 0
    end
  end

  def test_the_longest_file_is_the_first
    files = %w[gem_install_test.rb elf_test.rb].map { |name| Runner::TestFile.new(File.join(ROOT, "test", name)) }
    assert_operator files[0].seconds, :>, files[1].seconds
    assert_equal %w[test/gem_install_test.rb test/elf_test.rb], files.map(&:name)
  end

  private

  # @return [String] a test file with one test for each body
  def class_of(name, *bodies)
    tests = bodies.each_with_index.map { |body, index| "  def test_#{index} = (#{body})\n" }
    "require \"test_helper\"\nclass #{name}Test < Minitest::Test\n#{tests.join}end\n"
  end

  # @return [String] an argument of the runner: parts that are shell scripts
  def parts(scripts) = "parts: [#{scripts.map { |name, script| "Runner::Part.new(#{name.dump}, ['sh', '-c', #{script.dump}], 9)" }.join(", ")}]"

  def write(texts)
    texts.map { |name, text| File.join(@directory, "#{name}_test.rb").tap { |path| File.write(path, text) } }
  end

  def command(texts, settings)
    [RbConfig.ruby, "-w", "-r#{ROOT}/test/runner/run", "-r#{ROOT}/test/runner/part", "-e", "exit Runner::Run.new(ARGV, places: 2, #{settings}).call", *write(texts)]
  end

  # Processes that are killed leave their folders where the test removes them.
  def environment = { "TMPDIR" => @directory }

  def run_files(texts, settings = "")
    out, err, status = run_program(*command(texts, settings), env: environment)
    assert_empty err
    [out, status]
  end

  def start_files(texts)
    Open3.popen2e(environment, *command(texts, ""), pgroup: true) do |_, _, runner|
      yield runner
    ensure
      end_group(runner.pid)
    end
  end

  def gone?(pid)
    File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    true
  end
end
