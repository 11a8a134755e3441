# frozen_string_literal: true

require "trim/trim_helper"

# Culet.warmup, Culet.trim at will, and whether the figures are true.
class TrimWarmupTest < Minitest::Test
  include TrimHelper

  SCRIPT = <<~RUBY
    litter(60)
    strings = Array.new(1_000) { |index| "name-\#{index}" }
    young = GC.stat(:old_objects)
    told = Culet.warmup
    tell([told, resident, GC.stat(:old_objects) - young, strings.size])
  RUBY

  def test_it_tidies_up_and_tells
    told, now, aged, = run_trimmed(SCRIPT, auto: false).first
    assert_operator told[:resident_before_bytes] - told[:resident_after_bytes], :>, 40_000_000
    assert_in_delta now, told[:resident_after_bytes], 4_000_000
    assert_kind_of Integer, told[:trimmed_bytes]
    assert_equal "trim", told[:steps].last
    assert_operator aged, :>, 1_000
  end

  def test_without_trims_the_other_steps_are_made
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-e", <<~RUBY, env: TestHelper::NEUTRAL)
      require "culet"
      Culet.singleton_class.remove_method(:trim)
      Culet.define_singleton_method(:trim) { raise Culet::Error, "cannot" }
      bytes, steps = Culet.warmup.values_at(:trimmed_bytes, :steps)
      puts bytes.inspect, steps.include?("trim"), steps.empty?
    RUBY
    assert_predicate status, :success?, err
    assert_equal "nil\nfalse\nfalse\n", out
  end

  # What it says went back is what /proc sees missing.
  def test_figures_agree_with_the_kernel
    before, bytes, after, stats = run_trimmed(<<~RUBY, auto: false).first
      litter(60)
      GC.start
      before = resident
      bytes = Culet.trim
      tell([before, bytes, resident, Culet.trim_stats])
    RUBY
    assert_operator bytes, :>, 40_000_000
    assert_in_delta before - after, bytes, 3_000_000
    assert_equal [1, bytes], stats.values_at(:trims, :returned_bytes)
    assert_in_delta stats[:seconds], stats[:longest_seconds]
  end

  # Memory that comes back is counted as that.
  def test_what_comes_back_is_counted
    stats, = run_trimmed("litter(60); GC.start; Culet.trim; kept = Array.new(40_000) { 'x' * 1_000 }; tell([Culet.trim_stats, kept.size])", auto: false).first
    assert_includes 30_000_000..60_000_000, stats[:refaulted_bytes]
    assert_operator stats[:interval_seconds], :>, 0
  end
end
