# frozen_string_literal: true

require_relative "../scope/scope_helper"

# Which fix a report advises, by where the free memory lies.
class ReportAdviceTest < Minitest::Test
  include ScopeHelper

  # No slot of any Ruby holds so long a string.
  FILL = 'fill = -> { Array.new(5_400) { |i| "some string number #{i} " * 50 }.each_slice(3).map(&:first) }'
  WAIT = "3.times { GC.start }; puts :up; $stdout.flush; sleep"

  # Eight threads fill their own arenas and keep one block in three.
  IN_THREADS = <<~RUBY.freeze
    #{FILL}
    done = Queue.new
    8.times { Thread.new { Thread.current[:kept] = fill.call; done << true; sleep } }
    8.times { done.pop }
    #{WAIT}
  RUBY

  # The main thread does all of it; the others only have an arena.
  IN_MAIN = <<~RUBY.freeze
    #{FILL}
    kept = Array.new(8) { fill.call }
    8.times { Thread.new { sleep } }
    #{WAIT}
  RUBY

  # Next to nothing is kept, in pages that are whole.
  LOOSE = <<~RUBY.freeze
    Array.new(30_000) { |i| "x" * 1_000 }.clear
    fence = "y" * 1_000
    #{WAIT}
  RUBY

  def test_free_memory_in_threads_arenas_is_for_fewer_arenas
    advice = advice_for(IN_THREADS)
    assert_includes advice.keys, "arenas"
    assert_includes advice.fetch("arenas").fetch("remedy"), "MALLOC_ARENA_MAX"
  end

  def test_what_a_trim_would_return_comes_with_the_command_that_trims
    assert_includes advice_for(LOOSE).fetch("trim").fetch("remedy"), "RUBYOPT=-r$(culet lib auto)"
    assert_nil advice_for(WAIT).fetch("trim")["remedy"], "of a small process little would go back" unless RESIDENT_STACK
  end

  # What became free after the last collection goes back after the next.
  def test_who_trims_already_is_not_told_to
    advice = advice_for(<<~RUBY, "-I#{ROOT}/lib", "-rculet/auto")
      strings = Array.new(30_000) { "x" * 1_000 }
      GC.start
      GC.disable
      sleep 0.05 until Culet.trim_stats[:trims].positive?
      sleep 1
      strings.each(&:clear)
      puts :up
      $stdout.flush
      sleep
    RUBY
    assert_match(/would return [23]\d\.\d MB/, advice.fetch("trim").fetch("text"))
    assert_nil advice.fetch("trim")["remedy"]
    refute_includes advice.fetch("free memory").fetch("remedy"), "culet/auto"
  end

  def test_holes_in_the_main_arena_are_not
    advice = advice_for(IN_MAIN)
    refute_includes advice.keys, "arenas"
    assert_includes advice.fetch("free memory").fetch("text"), "between blocks in use"
  end

  # What the process has done already is not advised as if it were not there.
  def test_a_warm_up
    held = "HELD = Array.new(30_000) { 'x' * 1_000 }; #{WAIT}"
    assert_match(/\Aculet explain \d+ says whether they grow/, advice_for(held).fetch("in use").fetch("remedy")) unless RESIDENT_STACK
    slots = "KEPT = Thread.new { Array.new(400_000) { Object.new }.each_slice(50).map(&:first) }.value; #{WAIT}"
    assert_includes advice_for(slots).fetch("Ruby's slots").fetch("remedy"), "Culet.warmup"
    advice = advice_for("Culet.warmup(steps: [:collect]); #{slots}", "-I#{ROOT}/lib", "-rculet")
    assert_includes advice.fetch("Ruby's slots").fetch("text"), "Culet.warmup has run"
    assert_nil advice.fetch("Ruby's slots")["remedy"]
  end

  private

  def advice_for(program, *options)
    with_program(RbConfig.ruby, "--disable-gems", *options, "-e", program) do |pid|
      return json("report", pid.to_s).fetch("verdicts").to_h { |one| [one.fetch("topic"), one] }
    end
  end
end
