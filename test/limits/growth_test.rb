# frozen_string_literal: true

require "test_helper"
require "leaking_extension"
require "culet/allocators"
require "culet/limits"
require "json"

# Growth of memory as an assertion, on each allocator.
class GrowthTest < Minitest::Test
  PROGRAM = File.join(__dir__, "growth_program.rb")
  COUNTING = %w[glibc jemalloc tcmalloc culet].freeze
  # What the assertion promises: of 1,000 runs without growth, and of 100 with it.
  MOST_WRONG = 1
  LEAST_FOUND = 99
  PROCESSES = 5

  MINITEST = <<~RUBY
    require "minitest/autorun"
    require "culet/minitest"
    require ENV.fetch("LEAKING_EXTENSION")
    KEPT = []
    class OfTheUser < Minitest::Test
      def test_steady = assert_no_memory_growth { "text" * 50 }
      def test_objects = assert_no_memory_growth(times: 100) { KEPT << "x" * 700 }
      def test_native = assert_no_memory_growth(times: 200, warm_up: 20) { Leaking.parse(100) }
    end
  RUBY
  RSPEC = <<~RUBY
    require "culet/rspec"
    KEPT = []
    RSpec.describe "the user's" do
      it("is steady") { expect { "text" * 50 }.not_to grow_memory(times: 40) }
      it("grows") { expect { KEPT << Object.new }.to grow_memory(times: 40) }
      it("loses objects") { expect { KEPT << Object.new }.not_to grow_memory(times: 40) }
      it("loses nothing") { expect { Object.new }.to grow_memory(times: 40) }
      it("has the assertion") { assert_no_memory_growth(times: 40) { Object.new } }
    end
  RUBY

  def test_one_step_is_no_growth
    [0, 10, 19].each do |at|
      readings = [1_000] * (at + 1)
      readings << 90_000 while readings.size < 21
      refute_predicate growth(readings), :grows?
    end
  end

  def test_what_goes_up_and_down_is_no_growth
    refute_predicate growth(Array.new(21) { |at| at.even? ? 1_000 : 5_000 }), :grows?
    refute_predicate growth(Array.new(21) { |at| -100 * at }), :grows?
    refute_predicate growth(Array.new(21) { |at| 40 * at }), :grows?, "4 bytes a call are allowed"
  end

  def test_steps_of_most_batches_are_growth
    found = growth(Array.new(21) { |at| (1_000 * at) + (at > 9 ? 500_000 : 0) })
    assert_predicate found, :grows?
    assert_equal [100.0, [100.0, 100.0]], [found.per_call, found.interval]
    steps = ([2_000] * 16) + ([0] * 4)
    assert_equal [true, 16, 20], growth(sums(steps)).then { |one| [one.grows?, one.growing, one.batches] }
    refute_predicate growth(sums(([2_000] * 15) + ([0] * 5))), :grows?
  end

  # By R's pbinom, and the ranks of the interval by qbinom: the sixth lowest and highest of 20.
  def test_the_test_and_the_interval
    assert_in_delta 0.005909, growth(sums(([900] * 16) + ([0] * 4))).probability, 1e-6
    assert_equal [6.0, 15.0], growth(sums((1..20).map { |step| step * 10 }.shuffle(random: Random.new(1)))).interval
  end

  # In a series without growth half of all steps are larger than none, whatever the noise is.
  def test_noise_rarely_passes_for_growth
    random = Random.new(7)
    found = Array.new(2_000) { growth(sums(Array.new(20) { random.rand < 0.5 ? 10_000 : -10_000 })).grows? }.count(true)
    assert_operator found, :<=, 2_000 * Culet::BatchGrowth::LEVEL
  end

  TestHelper.allocators.each do |allocator|
    define_method("test_what_#{allocator}_has_in_use") do
      out = on(allocator, "-e", <<~RUBY)
        require "culet"; require "#{@extension}"
        read = -> { GC.start; Culet.send(:malloc_in_use) }
        3.times { read.call }
        before = read.call
        same = read.call
        1_000.times { Leaking.parse(100) }
        p [before, same, read.call].then { |one, two, three| one && [two - one, three - two] }
      RUBY
      next assert_equal("nil\n", out) unless COUNTING.include?(allocator)

      same, grown = JSON.parse(out)
      assert_equal 0, same
      assert_includes 100_000..130_000, grown
    end
  end

  def test_a_failure_names_what_is_kept
    out, = run_tests("minitest", MINITEST)
    assert_match(/\b3 runs, 3 assertions, 2 failures/, out)
    assert_match(/memory in use grows by [78]\d\d bytes a call \(95 % interval: [78]\d\d bytes to [78]\d\d bytes\), in each of two series of 100 calls:/, out)
    assert_match(/^  Ruby objects: 1\.00 a call, \d+ bytes in their slots$/, out)
    assert_match(%r{^  \S*/users_test\.rb:7: 1\.00 String, 7\d\d bytes a call$}, out)
    assert_match(/^  malloc: 1[0-3]\d bytes a call$/, out)
    assert_match(/^The lines that called malloc are known on culet's allocator: culet run -- COMMAND$/, out)
  end

  def test_on_culet_a_failure_names_the_native_function
    out, = run_tests("minitest", MINITEST, allocator: "culet")
    assert_match(/\b3 runs, 3 assertions, 2 failures/, out)
    assert_match(%r{^blocks of malloc that are kept:\n  \S*/users_test\.rb:8: parse \(leaking\.so\), \d+ bytes a call$}, out)
  end

  # Where blocks of malloc are not counted, those of an extension do not show, and a warning says so, once.
  def test_an_allocator_that_does_not_count
    out, err = run_tests("minitest", MINITEST, allocator: "mimalloc")
    assert_match(/\b3 runs, 3 assertions, 1 failure/, out)
    assert_match(%r{^  \S*/users_test\.rb:7: 1\.00 String, 7\d\d bytes a call$}, out)
    assert_equal ["culet: mimalloc does not tell how much memory is in use, so growth is judged by Ruby's objects alone\n"], err.lines
  end

  def test_the_matcher
    out, = run_tests("rspec", RSPEC)
    assert_match(/\b5 examples, 2 failures/, out)
    assert_match(/^\s*memory in use grows by \d+ bytes a call/, out)
    assert_match(%r{^\s*\S*/users_test\.rb:6: 1\.00 Object, \d+ bytes a call$}, out)
    assert_match(/expected memory in use to grow with each call of the block, and it does not/, out)
  end

  def test_arguments_that_are_none
    { times: 19, warm_up: -1 }.each do |name, value|
      error = assert_raises(ArgumentError) { Culet::Limits::MemoryGrowth.new(name => value) { nil } }
      assert_match(/\A#{name} is a number of calls.*, not #{value}\z/, error.message)
    end
    assert_raises(ArgumentError) { Culet::Limits::MemoryGrowth.new }
  end

  # A cache that is being filled at first slows down or is full in the second series.
  def test_a_cache_that_is_being_filled
    cache = {}
    calls = 0
    refute_predicate(Culet::Limits::MemoryGrowth.new(times: 40) { cache[calls += 1] = "page #{calls}" if calls < 55 }, :grows?)
  end

  # The process makes as many calls as promised.
  def test_the_number_of_calls
    calls = 0
    refute_predicate(Culet::Limits::MemoryGrowth.new(times: 30) { calls += 1 }, :grows?)
    assert_equal 10 + 40, calls, "whole batches, of two calls each"
  end

  COUNTING.each do |allocator|
    define_method("test_errors_are_rare_on_#{allocator}") do
      skip_unless_all
      wrong = Array.new(PROCESSES) { judge(allocator, "steady", 10) }
      assert_operator wrong.flatten.sum { |one| one["failed"] }, :<=, MOST_WRONG, wrong.inspect
      assert_equal 1_000, wrong.flatten.sum { |one| one["failed"] + one["passed"] }
    end

    define_method("test_leaks_are_found_on_#{allocator}") do
      skip_unless_all
      found = Array.new(PROCESSES) { judge(allocator, "leaks", 20) }.flatten.group_by { |one| one["name"] }
      found.each { |name, runs| assert_operator runs.sum { |one| one["failed"] }, :>=, LEAST_FOUND, name }
      assert_equal [100], found.values.map { |runs| runs.sum { |one| one["failed"] + one["passed"] } }.uniq
    end
  end

  def setup
    @folder = new_folder
    @extension = LeakingExtension.build(@folder)
  end

  private

  def growth(readings) = Culet::BatchGrowth.new(readings, calls: 10, least: 4)

  # @return [Array<Integer>] readings with these steps
  def sums(steps) = steps.reduce([0]) { |readings, step| readings << (readings.last + step) }

  def environment(allocator) = NEUTRAL.merge(Culet::Allocators.parse(allocator).environment({}))

  # @return [String] what the Ruby printed
  def on(allocator, *words)
    out, = assert_success(RbConfig.ruby, "-W0", "-I#{ROOT}/lib", *words, env: environment(allocator), patience: 600)
    out
  end

  def judge(allocator, kind, times) = on(allocator, PROGRAM, kind, times, @extension).lines.map { |line| JSON.parse(line) }

  # @return [Array(String, String)] what the framework printed
  def run_tests(framework, text, allocator: "glibc")
    file = File.join(@folder, "users_test.rb")
    File.write(file, text)
    command = framework == "rspec" ? ["-e", "load Gem.bin_path(\"rspec-core\", \"rspec\")", "--", file] : [file]
    environment = environment(allocator).merge("RUBYOPT" => "-r#{ROOT}/bin/gems.rb -I#{ROOT}/lib", "LEAKING_EXTENSION" => @extension)
    out, err, = run_program(RbConfig.ruby, "-w", *command, env: environment, chdir: @folder)
    [out, err]
  end
end
