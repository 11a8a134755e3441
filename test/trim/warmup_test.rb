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

  # On Ruby 3.3 and later Process.warmup compacts; on a worker's pages it shows when nothing is collected after that.
  def test_a_collection_follows_the_compaction
    steps, majors = run_trimmed("before = GC.stat(:major_gc_count); tell([Culet.warmup[:steps], GC.stat(:major_gc_count) - before])", auto: false).first
    compaction = steps.index("ruby") || steps.index("compact") || 0
    assert steps.drop(compaction + 1).intersect?(%w[collect promote]), steps.inspect
    assert_operator majors, :>=, 2
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

  # Each step does what it says, alone, and no other is made.
  def test_steps_are_chosen_by_name
    collections, moved, aged, told = run_trimmed(<<~RUBY, auto: false).first
      GC.disable # but for those that are asked for
      count = -> { GC.stat(:major_gc_count) }
      made = ->(*steps, &figure) { figure.call.then { |before| Culet.warmup(steps: steps); figure.call - before } }
      tell([[[], [:collect], [:promote]].map { |steps| made.call(*steps, &count) }, made.call(:compact) { GC.stat(:compact_count) },
            made.call(:collect, :promote) { GC.stat(:old_objects) }.positive?, Culet.warmup(steps: %i[trim collect]).slice(:steps, :costs)])
    RUBY
    assert_equal [0, 1, 3], collections
    assert_equal 1, moved
    assert aged
    assert_equal %w[trim collect], told[:steps]
    assert_equal %i[trim collect], told[:costs].keys
    told[:costs].each_value { |cost| assert_operator cost[:resident_bytes], :>, 1_000_000 }
    assert_operator told[:costs].values.sum { |cost| cost[:seconds] }, :>, 0
  end

  def test_a_block_comes_before_the_steps_and_an_unknown_step_before_everything
    seen, error = run_trimmed(<<~RUBY, auto: false).first
      seen = []
      seen << Culet.warmup(steps: [:collect]) { seen << :block }[:steps]
      error = begin; Culet.warmup(steps: %i[collect shake]) { seen << :never }; rescue ArgumentError => e; e.message; end
      tell([seen, error])
    RUBY
    assert_equal ["block", %w[block collect]], seen
    assert_match(/\A:shake is not a warm-up step; the steps are :ruby, :collect/, error)
  end

  # What this Ruby has no call for is left out, not claimed.
  def test_a_step_that_cannot_be_made_is_not_told
    told, can = run_trimmed("tell([Culet.warmup(steps: %i[ruby collect])[:steps], Process.respond_to?(:warmup)])", auto: false).first
    assert_equal can ? %w[ruby collect] : %w[collect], told
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
