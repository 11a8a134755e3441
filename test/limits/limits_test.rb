# frozen_string_literal: true

require "test_helper"
require "culet/text/size"

# Memory limits as assertions, in test files that are run by their own frameworks.
class LimitsTest < Minitest::Test
  # framework => how a test of that name with that body is written, and how a file is run
  FRAMEWORKS = {
    "minitest" => { head: "require \"minitest/autorun\"\nrequire \"culet/minitest\"\n", open: "class OfTheUser < Minitest::Test\n",
                    test: "  def test_%<name>s; %<body>s; end\n", command: [RbConfig.ruby, "-w"] },
    "rspec" => { head: "require \"culet/rspec\"\n", open: "RSpec.describe \"the user's\" do\n", test: "  it(\"%<name>s\") { %<body>s }\n",
                 command: [RbConfig.ruby, "-w", "-e", "load Gem.bin_path(\"rspec-core\", \"rspec\")", "--"] }
  }.freeze

  KEPT = "KEPT = Array.new(200_000) { |i| \"a string of some length, number \#{i}\" }\n4.times { GC.start }\n"
  WRITES = "assert_shared_after_fork { KEPT.each { |text| text << \"!\" } }"

  FRAMEWORKS.each_key do |framework|
    define_method("test_limits_that_are_kept_#{framework}") do
      out, status = run_tests(framework, small: "assert_rss_below(\"2GB\")", shared: "assert_shared_after_fork(at_least: 0.3, max_private: \"1GB\") { 1 + 1 }",
                                         other: "assert_rss_below(2**40, pid: Process.ppid)", busy: "assert_rss_below(\"2 GiB\") { KEPT.map(&:upcase) }")
      assert_predicate status, :success?, out
      assert_match(/\b4 (runs|examples), .*\b0 failures/, out)
    end

    define_method("test_a_process_too_large_#{framework}") do
      out, status = run_tests(framework, large: "assert_rss_below(\"1MB\")")
      refute_predicate status, :success?
      assert_match(/\b1 failure/, out)
      assert_match(/process \d+ has [\d.]+ MB of private memory, not less than 1\.00 MB; its [\d.]+ MB of resident memory:/, out)
      assert_match(/^\s*Ruby objects +[\d.]+ MB$/, out)
      assert_match(/^\s*malloc: in use, resident +[\d.]+ MB$/, out)
    end

    define_method("test_sharing_that_is_lost_#{framework}") do
      out, status = run_tests(framework, lost: WRITES)
      refute_predicate status, :success?
      assert_match(/the forked process still shares [\d.]+ % of the [\d.]+ MB it inherited, less than 90\.0 %; [\d.]+ MB became private:/, out)
      assert_match(/^\s*Ruby objects +[\d.]+ MB$/, out)
    end

    define_method("test_too_much_of_its_own_#{framework}") do
      own = "assert_shared_after_fork(at_least: 0, max_private: \"4MB\") { $own = Array.new(200_000) { |i| \"own \#{i}\" * 4 } }"
      out, status = run_tests(framework, own: own)
      refute_predicate status, :success?
      assert_match(/the forked process has [\d.]+ MB of private memory, more than 4\.00 MB:/, out)
    end

    define_method("test_an_exception_in_the_fork_#{framework}") do
      out, status = run_tests(framework, raising: "assert_shared_after_fork { raise ArgumentError, \"no such thing\" }")
      refute_predicate status, :success?
      assert_includes out, "the forked process failed: no such thing (ArgumentError)"
    end
  end

  # The child ends without what the test program has for its end, and is waited for.
  def test_the_fork_leaves_nothing
    out, status = run_tests("minitest", quiet: "at_exit { puts \"end of \#{Process.pid}\" }; assert_shared_after_fork(at_least: 0) { nil }; " \
                                               "assert_raises(Errno::ECHILD) { Process.wait }")
    assert_predicate status, :success?, out
    assert_equal 1, out.scan(/^end of /).size
  end

  def test_limits_that_are_none
    out, status = run_tests("minitest", size: "assert_raises(ArgumentError) { assert_rss_below(\"much\") }",
                                        share: "assert_raises(ArgumentError) { assert_shared_after_fork(at_least: 90) { nil } }",
                                        block: "assert_raises(ArgumentError) { assert_shared_after_fork }")
    assert_predicate status, :success?, out
  end

  def test_sizes
    { "80MB" => 80_000_000, "64 MiB" => 64 << 20, "1.5g" => 3 << 29, "400M" => 400 << 20, "1.5GB" => 1_500_000_000, "12" => 12, 77 => 77, "5kb" => 5000, "1TiB" => 1 << 40 }
      .each { |text, bytes| assert_equal bytes, Culet::Text::Size.parse(text), text.to_s }
    assert_equal ["400 MiB", "291 MiB", "1,536 MiB", "2 GiB"], [[400 << 20], [291 << 20, 400 << 20], [3 << 29], [2 << 30]].map { |sizes| Culet::Text::Size.limit(*sizes) }
    assert_equal ["400 MB", "512 MB"], [[400_000_000], [512_000_000, 1_024_000_000]].map { |sizes| Culet::Text::Size.limit(*sizes) }
    ["", "x", "0", 0, -5, "-5MB", "5 XB", "MB", "1.2.3", nil, "5MB and more"].each { |text| assert_nil Culet::Text::Size.parse(text), text.inspect }
  end

  private

  # @param tests [Hash{Symbol => String}] name => body
  # @return [Array(String, Process::Status)] what the framework printed, and how it ended
  def run_tests(framework, **tests)
    how = FRAMEWORKS.fetch(framework)
    Dir.mktmpdir do |directory|
      bodies = tests.map { |name, body| format(how[:test], name: name, body: body) }.join
      File.write("#{directory}/users_test.rb", "#{how[:head]}#{KEPT}#{how[:open]}#{bodies}end\n")
      environment = NEUTRAL.merge("RUBYOPT" => "-r#{ROOT}/bin/gems.rb -I#{ROOT}/lib", "SPEC_OPTS" => nil)
      out, err, status = run_program(*how[:command], "#{directory}/users_test.rb", env: environment, chdir: directory)
      assert_empty err.lines.grep(/#{ROOT}/o), "warnings"
      [out, status]
    end
  end
end
