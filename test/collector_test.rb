# frozen_string_literal: true

require_relative "test_helper"
require "json"
require "culet/model/collector_limits"

# The settings of Ruby's collector: which of them a version reads, what they make of its limits, and what is said.
class CollectorTest < Minitest::Test
  # Ruby 3.1 to 4.1 => what is set for the first slots, and what becomes of it.
  INITIAL = { "3.1.2" => %i[effective removed removed], "3.2.0" => %i[effective removed removed], "3.3.1" => %i[removed effective removed],
              "3.4.7" => %i[removed effective removed], "4.0.0" => %i[removed effective removed], "4.1.0" => %i[removed removed effective] }.freeze
  SLOTS = { "RUBY_GC_HEAP_INIT_SLOTS" => "20000", "RUBY_GC_HEAP_0_INIT_SLOTS" => "20000", "RUBY_GC_HEAP_INIT_BYTES" => "64M" }.freeze
  AGENT = ["-I#{ROOT}/lib", "-rculet/agent"].freeze

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
    initial = SLOTS.keys.find { |name| settings({ name => "20k" }, RUBY_VERSION).list.first.state == :effective }
    values = { initial => "20k", "RUBY_GC_HEAP_GROWTH_FACTOR" => "0.9", "RUBY_GC_HEAP_FREE_SLOTS" => "x",
               "RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO" => "0.0", "RUBY_GC_MALLOC_LIMIT" => "0x2000000", "RUBY_GC_MALLOC_LIMIT_MAX" => "64M",
               "RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR" => "1.5", "RUBY_GC_OLDMALLOC_LIMIT" => "0" }
    _, err, = run_program(RbConfig.ruby, "-W", "-e", "", env: NEUTRAL.merge(values))
    assert_includes err, "#{initial}=20480 "
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
      assert_match(/its heap may grow by #{Regexp.escape(Culet::Text::Size.human(bytes))}\z/, limits.sentence)
    end
    assert_equal [%w[growth], %w[compact growth]], %w[4.0.0 4.1.0].map { |one| Culet::CollectorLimits.new(stat, settings: settings({}, one)).remedies }
    refute Culet::CollectorLimits.new(stat, settings: settings({}, "3.4.0")).inflated?(100_000_000)
    assert Culet::CollectorLimits.new(stat.merge("oldmalloc_increase_bytes_limit" => 128 << 20), settings: settings({}, "3.4.0")).inflated?(100_000_000)
  end

  def test_doctor_names_the_settings
    env = { "RUBY_GC_HEAP_GROWTH_FACTOR" => "2.5", "RUBY_GC_MALLOC_LIMIT" => "no", "RUBY_FREE_MIN" => "9", "RUBY_GC_HEAP_SLOTS_GROWTH" => "2" }
    found = findings("sleep", env: env)
    texts = found.to_h { |one| [one["text"][/RUBY_\w+/], one] }
    assert_match(/=2.5 \(default: 1.8\); RUBY_GC_HEAP_GROWTH_FACTOR makes Ruby keep more memory/, texts.fetch("RUBY_GC_HEAP_GROWTH_FACTOR")["text"])
    assert_match(/\Aunset RUBY_GC_HEAP_GROWTH_FACTOR in .*culet explain \d+/, texts.fetch("RUBY_GC_HEAP_GROWTH_FACTOR")["remedy"])
    assert_equal %w[bad bad note], texts.values_at("RUBY_GC_MALLOC_LIMIT", "RUBY_FREE_MIN", "RUBY_GC_HEAP_SLOTS_GROWTH").map { |one| one["verdict"] }
    assert_match(/Set RUBY_GC_HEAP_FREE_SLOTS/, texts.fetch("RUBY_FREE_MIN")["remedy"])
    assert_equal [["ok", "no variable changes the collector"]], findings("sleep").map { |one| one.values_at("verdict", "text") }
  end

  # The example of ruby/ruby#18433: much garbage at boot.
  def test_doctor_asks_the_agent_what_a_boot_made_of_the_limits
    boot = "keep = Array.new(400_000) { Object.new }; Array.new(3_000_000) { Object.new }.clear; 3.times { GC.start }; GC.disable; GC.stress = false"
    off, limits = findings("#{boot}; puts :up; $stdout.flush; sleep", *AGENT)
    assert_equal "the collector is off (GC.disable)", off["text"]
    assert_match(/\ARuby collects after .* of malloc \(16\.8 MB at the start\) or .*; until then its heap may grow by /, limits["text"])
    assert_match(/RUBY_GC_HEAP_GROWTH_FACTOR=1\.1 in/, limits["remedy"]) if limits["verdict"] == "note"
    assert_equal 1, findings("puts :up; $stdout.flush; sleep", *AGENT).count { |one| one["text"].start_with?("Ruby collects after") }
  end

  def test_a_collector_that_is_off
    found = [{}, { "gc_disabled" => false }, { "gc_disabled" => true }].map { |stat| Culet::CollectorLimits.new(stat, settings: settings({}, "3.4.0")).disabled? }
    assert_equal [false, false, true], found
  end

  private

  def settings(environment, version) = Culet::CollectorSettings.new(environment, version: version)

  def findings(code, *options, env: {})
    code = "puts :up; $stdout.flush; #{code}" unless code.include?(":up")
    with_program(RbConfig.ruby, *options, "-e", code, env: NEUTRAL.merge(env), err: File::NULL) do |pid|
      out, err, = run_culet("doctor", pid.to_s, "--json")
      refute_empty out, err
      return JSON.parse(out)["findings"].select { |one| one["topic"] == "collector" }
    end
  end
end
