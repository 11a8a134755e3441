# frozen_string_literal: true

require_relative "requires_helper"

# What culet-syscall-counter.so counts, against what the kernel is asked: strace sees the calls inside glibc too.
class RequiresCallsTest < Minitest::Test
  include RequiresHelper

  NAMED = /\A(?:\[pid +\d+\] )?(?:open|openat|stat|lstat|newfstatat|statx|access|faccessat2?|readlink|readlinkat)\(/
  private_constant :NAMED

  def test_look_ups_are_those_of_the_kernel
    skip "strace is not installed" unless system("strace", "-V", out: File::NULL, err: File::NULL)
    skip "strace may not trace here" unless system("strace", "true", out: File::NULL, err: File::NULL)

    FileUtils.mkdir_p(%w[real/deep/er empty].map { |name| path(name) })
    File.symlink(path("real"), path("link"))
    write("real/deep/er/first.rb" => "require 'second'; require_relative 'third'; begin; require 'nowhere_to_be_found'; rescue LoadError; end",
          "real/second.rb" => "File.exist?('#{path("none")}')", "real/deep/er/third.rb" => "load '#{path("real/fourth.rb")}'", "real/fourth.rb" => "")
    command = [RbConfig.ruby, "--disable-gems", "-I#{path("empty")}", "-I#{path("none")}", "-I#{path("link")}", "-e", "require '#{path("link/deep/er/first")}'"]
    features = record(*command)["features"].reject { |one| one["how"] == "program" }
    counted = [features.sum { |one| one["syscalls"] + one["other_syscalls"] }, features.sum { |one| one["failed_syscalls"] }]
    assert_equal traced(command), counted
  end

  def test_requests_for_memory
    write("asks.rb" => "require 'fiddle'; MALLOC = Fiddle::Function.new(Fiddle::Handle::DEFAULT['malloc'], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)",
          "many.rb" => "5_000.times { MALLOC.call(10_000) }", "none.rb" => "5_000.times { }")
    document = record(*ruby("-e", "require 'asks'; require 'none'; require 'many'"))
    many, none = %w[many.rb none.rb].map { |name| feature(document, name) }
    assert_operator many["mallocs"] - none["mallocs"], :>=, 5_000
    assert_includes 50_000_000..54_000_000, many["malloc_bytes"] - none["malloc_bytes"]
  end

  # It stands before any allocator, and what was preloaded already stays.
  def test_beside_another_allocator
    require "culet/allocators"
    write("a.rb" => "A = File.read('/proc/self/maps').scan(/lib(?:jemalloc|culet)[^ ]*\\.so/).uniq")
    %w[jemalloc culet].each do |name|
      out, = assert_culet_success("requires", "--json", "--out", path("report.json"), "--", *ruby("-e", "require 'a'; p A"),
                                  env: TestHelper::NEUTRAL.merge(Culet::Allocators.parse(name).environment))
      assert_includes out, "lib#{name}"
      assert_operator feature(JSON.parse(File.read(path("report.json"))), "a.rb")["mallocs"], :>, 10
    end
  end

  private

  # @return [Array(Integer, Integer)] calls from the opening of the first file on that name a path, and how many failed
  def traced(command)
    _, err, = run_program("strace", "-f", "-e", "trace=%file", *command, env: TestHelper::NEUTRAL)
    lines = err.lines.grep(NAMED).grep_v(/, "", .*AT_EMPTY_PATH/)
    first = lines.index { |line| line.include?("link/deep/er/first.rb") }
    last = lines.rindex { |line| line.match?(/#{Regexp.escape(@folder)}|nowhere_to_be_found/) }
    calls = lines[first..last]
    [calls.size, calls.count { |line| line.include?("= -1") && !line.include?("EINVAL") && !line.include?(path("none\"")) }]
  end
end
