# frozen_string_literal: true

# Alone: the suites that --all runs have time limits of their own.

require "test_helper"
require_relative "comparison"
require_relative "cruby_suite"
require_relative "outcomes"
require_relative "python_suite"

# Other people's test suites: how their reports are read and compared; and with --all the suites themselves.
class SuitesTest < Minitest::Test
  CRUBY_REPORT = <<~TEXT
    [  1/ 12] TestGc#test_start = 0.11 s
    [  2/ 12] TestHash::TestSubHash#test_leak = 30.06 s
    [  3/ 12] TestTranscode#test_inspect(UTF-32) = 0.00 s
    [  4/ 12] TestProcess#test_skipped = 0.00 s
    [  5/ 12] TestProcess#test_environment = 0.20 s
    [  6/ 12] TestGc#test_that_never_ended
      1) Failure:
    TestProcess#test_environment [/a/test_process.rb:448]:
    <""> expected but was
    <"A=1
    ">.

      2) Error:
    TestHash::TestSubHash#test_leak:
    Timeout::Error: execution expired

      3) Skipped:
    TestProcess#test_skipped [/a/test_process.rb:9]:
    only elsewhere
  TEXT
  PYTHON_REPORT = <<~XML
    <testsuites tests="4" errors="0" failures="2"><testsuite start="1">
    <testcase name="test.test_gc.GCTests.test_list" status="run" result="completed" time="0.1"></testcase>
    <testcase name="test.test_gc.GCTests.test_leak" status="run" result="completed" time="0.1"><failure type="AssertionError">no</failure></testcase>
    <testcase name="test.test_gc.GCTests.test_many (i=1)" status="run" result="completed"><error>no</error></testcase>
    <testcase name="test.test_gc.GCTests.test_many" status="run" result="completed"></testcase>
    <testcase name="test.test_gc.GCTests.test_other" status="run" result="skipped"><skipped>no need</skipped></testcase>
    </testsuite></testsuites>
  XML

  def test_crubys_report
    found = Suites::CRubySuite.parse(CRUBY_REPORT)
    assert_equal({ "TestGc#test_start" => :passed, "TestHash::TestSubHash#test_leak" => :failed, "TestTranscode#test_inspect(UTF-32)" => :passed,
                   "TestProcess#test_skipped" => :skipped, "TestProcess#test_environment" => :failed }, found.to_h)
    assert_equal :missing, found["TestGc#test_that_never_ended"]
    assert_equal "5 tests: 2 passed, 2 failed, 1 skipped", found.to_s
  end

  def test_pythons_report
    Dir.mktmpdir do |folder|
      File.write("#{folder}/report.xml", PYTHON_REPORT)
      found = Suites::PythonSuite.parse("#{folder}/report.xml").to_h.transform_keys { |name| name.split(".").last }
      assert_equal({ "test_list" => :passed, "test_leak" => :failed, "test_many" => :failed, "test_other" => :skipped }, found)
    end
  end

  def test_what_fails_again_and_only_on_culet_is_culets
    comparison = compare({ "a" => :passed, "b" => :passed }, { "a" => :passed, "b" => :failed }) { |_, preload| preload ? :failed : :passed }
    assert_equal ["b"], comparison.added.map(&:name)
    refute comparison.good?
    assert_includes comparison.to_s, "b: passed, passed, passed, passed on glibc; failed, failed, failed, failed on culet"
  end

  def test_a_test_that_disappears_has_failed
    comparison = compare({ "a" => :passed, "b" => :passed }, { "a" => :passed }) { |_, preload| preload ? :missing : :passed }
    assert_equal ["b"], comparison.added.map(&:name)
  end

  def test_once_more_in_three_is_enough_for_blame
    answers = %i[passed passed failed]
    comparison = compare({ "a" => :passed }, { "a" => :failed }) { |_, preload| preload ? answers.shift : :passed }
    assert_equal ["a"], comparison.added.map(&:name)
  end

  def test_what_passes_again_is_a_flake
    comparison = compare({ "a" => :passed }, { "a" => :failed }) { :passed }
    assert_equal [[], ["a"]], [comparison.added.map(&:name), comparison.flakes.map(&:name)]
    assert comparison.good?
  end

  def test_what_fails_on_glibc_too_is_a_flake
    comparison = compare({ "a" => :passed }, { "a" => :failed }) { :failed }
    assert_equal [[], ["a"]], [comparison.added.map(&:name), comparison.flakes.map(&:name)]
  end

  def test_what_fails_on_glibc_at_once_is_not_looked_at
    comparison = compare({ "a" => :failed, "b" => :passed }, { "a" => :failed, "b" => :passed }) { flunk }
    assert comparison.good?
  end

  def test_what_is_known_is_told_and_not_blamed
    comparison = compare({ "a" => :passed, "b" => :passed }, { "a" => :failed, "b" => :passed }, known: { "a" => "it is meant" }) { flunk }
    assert comparison.good?
    assert_includes comparison.to_s, "a: passed on glibc; failed on culet; it is meant"
  end

  def test_a_suite_of_which_nothing_ran_is_not_good
    refute compare({}, {}) { flunk }.good?
  end

  def test_complaints_are_told
    plain = Suites::Outcomes.new({ "a" => :passed })
    broken = plain + Suites::Outcomes.new(complaints: ["ruby: 3 files: it was killed"])
    assert_includes Suites::Comparison.new(plain: plain, preloaded: broken) { flunk }.to_s, "on culet: ruby: 3 files: it was killed"
  end

  def test_a_program_that_hangs_is_ended_with_its_children
    text, wrong = Suites::Program.run("sh", "-c", "echo $$; sleep 1000 & wait", seconds: 1)
    assert_equal "sh was not done after 1 s", wrong
    assert_raises(Errno::ESRCH) { Process.kill(0, Integer(text)) }
  end

  def test_crubys_own_tests_pass_as_on_glibc = run_suite("cruby")
  def test_pythons_own_tests_pass_as_on_glibc = run_suite("python")

  private

  def compare(plain, preloaded, known: {}, &again)
    Suites::Comparison.new(plain: Suites::Outcomes.new(plain), preloaded: Suites::Outcomes.new(preloaded), known: known, &again)
  end

  def run_suite(name)
    skip "a quarter of an hour: bin/test --all runs it" unless all_tests?
    text, error, status = run_program(File.expand_path(name, __dir__), env: NEUTRAL, patience: 7_200)
    puts "", "# #{name}'s own tests", text.gsub(/^/, "  ")
    skip error[/^culet suite: skipped: (.+)$/, 1] if status.exitstatus == 77
    assert status.success?, text + error
  end
end
