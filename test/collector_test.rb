# frozen_string_literal: true

require_relative "test_helper"
require "culet/model/collector_limits"

# The settings of Ruby's collector: which of them a version reads, what they make of its limits, and what is said.
class CollectorTest < Minitest::Test
  # Ruby 3.1 to 4.1 => what is set for the first slots, and what becomes of it.
  INITIAL = { "3.1.2" => %i[effective removed removed], "3.2.0" => %i[effective removed removed], "3.3.1" => %i[removed effective removed],
              "3.4.7" => %i[removed effective removed], "4.0.0" => %i[removed effective removed], "4.1.0" => %i[removed removed effective] }.freeze
  SLOTS = { "RUBY_GC_HEAP_INIT_SLOTS" => "20000", "RUBY_GC_HEAP_0_INIT_SLOTS" => "20000", "RUBY_GC_HEAP_INIT_BYTES" => "64M" }.freeze

  def test_each_version_reads_its_own_variables
    INITIAL.each do |version, states|
      found = settings(SLOTS, version).list.to_h { |one| [one.name, one.state] }
      assert_equal states, found.values_at(*SLOTS.keys), version
    end
    instead = settings(SLOTS, "3.3.0").list.to_h { |one| [one.name, one.instead] }
    assert_equal "RUBY_GC_HEAP_0_INIT_SLOTS to RUBY_GC_HEAP_4_INIT_SLOTS", instead["RUBY_GC_HEAP_INIT_SLOTS"]
    assert_equal "RUBY_GC_HEAP_INIT_BYTES", settings(SLOTS, "4.1.0").list.first.instead
    assert_equal "RUBY_GC_HEAP_FREE_SLOTS", settings({ "RUBY_FREE_MIN" => "1" }, "3.1.0").list.first.instead
  end

  # What this Ruby itself says of each value, with -W.
  def test_values_are_those_of_ruby
    values = { "RUBY_GC_HEAP_INIT_SLOTS" => "20k", "RUBY_GC_HEAP_GROWTH_FACTOR" => "0.9", "RUBY_GC_HEAP_FREE_SLOTS" => "x",
               "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO" => "0.0", "RUBY_GC_MALLOC_LIMIT" => "0x2000000", "RUBY_GC_MALLOC_LIMIT_MAX" => "64M",
               "RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR" => "1.5", "RUBY_GC_OLDMALLOC_LIMIT" => "0" }
    _, err, = run_program(RbConfig.ruby, "-W", "-e", "", env: NEUTRAL.merge(values))
    skip "this Ruby names other variables" unless err.include?("RUBY_GC_HEAP_INIT_SLOTS=20480 ")
    read = settings(values, RUBY_VERSION).list.to_h { |one| [one.name, one] }
    values.each_key do |name|
      said = err.lines.grep(/#{name}\b/).join
      ignored = said.match?(/ignored|invalid/)
      assert_equal ignored, read.fetch(name).state == :invalid, "#{name}: #{said}"
      assert_in_delta Float(said[/=(\S+)/, 1]), read.fetch(name).value, 1e-6 unless ignored
    end
  end

  def test_what_keeps_memory
    kept = { "RUBY_GC_HEAP_GROWTH_FACTOR" => "2.5", "RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO" => "0.9", "RUBY_GC_MALLOC_LIMIT_MAX" => "128M",
             "RUBY_GC_OLDMALLOC_LIMIT" => "64M" }
    frugal = { "RUBY_GC_HEAP_GROWTH_FACTOR" => "1.1", "RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO" => "0.5", "RUBY_GC_HEAP_GROWTH_MAX_SLOTS" => "1000000",
               "RUBY_GC_MALLOC_LIMIT_MAX" => "16M", "RUBY_GC_HEAP_FREE_SLOTS" => "" }
    assert_equal kept.keys.sort, settings(kept, "3.4.0").keeping
    assert_empty settings(frugal, "3.4.0").keeping
    assert_equal %w[RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO RUBY_GC_HEAP_GROWTH_FACTOR], settings(kept, "3.4.0").keeping_slots
  end

  def test_limits_that_a_boot_has_inflated
    stat = { "malloc_increase_bytes_limit" => 33_554_432, "oldmalloc_increase_bytes_limit" => 33_554_432, "heap_live_slots" => 1_000_000 }
    { ["3.1.0", "heap_allocatable_pages", 3_000] => 3_000 * 16_384, ["3.3.0", "heap_allocatable_pages", 1_000] => 65_536_000,
      ["3.4.0", "heap_allocatable_slots", 1_000_000] => 40_000_000, ["4.1.0", "heap_allocatable_bytes", 50_000_000] => 50_000_000 }
      .each do |(version, name, value), bytes|
      limits = Culet::CollectorLimits.new(stat.merge(name => value), settings: settings({}, version))
      assert_equal [bytes, true], [limits.allocatable_bytes, limits.inflated?(100_000_000)], version
      assert_match(/may add #{Regexp.escape(Culet::Text::Size.human(bytes))} to its heap/, limits.sentence)
    end
    refute Culet::CollectorLimits.new(stat, settings: settings({}, "3.4.0")).inflated?(100_000_000)
    assert Culet::CollectorLimits.new(stat.merge("oldmalloc_increase_bytes_limit" => 128 << 20), settings: settings({}, "3.4.0")).inflated?(100_000_000)
  end

  private

  def settings(environment, version) = Culet::CollectorSettings.new(environment, version: version)
end
