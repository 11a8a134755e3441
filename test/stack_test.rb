# frozen_string_literal: true

require "test_helper"
require "culet/allocators"

# What a Ruby process has once used of its main thread's stack goes back, and is there again when it is wanted.
class StackTest < Minitest::Test
  include TestHelper

  # A few MB of the stack, by recursion through C (each); what is resident of it is printed before and after `between`.
  PROGRAM = <<~RUBY
    def resident = File.read("/proc/self/smaps")[/\\[stack\\]\\n.*?^Rss: +(\\d+) kB/m, 1].to_i
    def deep(levels) = levels.zero? ? 0 : [1].each { |one| return one + deep(levels - 1) }

    deep(2_000)
    before = resident
    %<between>s
    puts before, resident, deep(2_000)
  RUBY
  TRIM = 'require "fiddle"; Fiddle::Function.new(Fiddle::Handle::DEFAULT["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT).call(0)'

  def test_a_trim_gives_back_what_is_not_used
    before, after, result = run_on_culet(TRIM)
    assert_operator after, :<, before / 2
    assert_equal 2_000, result
  end

  # Ruby's other threads do not know what the main thread uses.
  def test_a_trim_in_another_thread_leaves_it
    before, after, = run_on_culet("Thread.new { #{TRIM} }.join")
    assert_operator after, :>=, before
  end

  def test_a_trim_in_a_fiber_leaves_it
    before, after, = run_on_culet("Fiber.new { #{TRIM} }.resume")
    assert_operator after, :>=, before
  end

  # Other programs may have stacks of fibers inside of the main thread's.
  def test_a_program_that_is_not_ruby_keeps_its_stack
    directory = new_folder
    other = File.join(directory, "other")
    FileUtils.cp(RbConfig.ruby, other)
    before, after, = run_on_culet(TRIM, ruby: other)
    assert_operator after, :>=, before
  end

  private

  def run_on_culet(between, ruby: RbConfig.ruby)
    environment = Culet::Allocators.parse("culet").environment(ENV.to_h.merge(NEUTRAL).compact, isolated: true)
    output, = assert_success(ruby, "-I#{$LOAD_PATH.join(":")}", "-e", format(PROGRAM, between: between), env: environment)
    numbers = output.lines.map(&:to_i)
    assert_operator numbers.first, :>, 1_000, "the stack was not used"
    numbers
  end
end
