# frozen_string_literal: true

require "test_helper"
require "culet/metrics"
require_relative "metrics_helper"

# The text of a scrape, and what a process says of itself.
class MetricsTextTest < Minitest::Test
  include MetricsHelper

  def setup
    @samples = parse(Culet::Metrics.text)
  end

  def test_the_kernels_figures
    rss = File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE)
    assert_in_delta rss, value(@samples, "process_resident_memory_bytes"), 0.05 * rss
    rollup = File.read("/proc/self/smaps_rollup").scan(/^(\w+): +(\d+) kB/).to_h { |name, kilobytes| [name, kilobytes.to_i * 1024] }
    assert_in_delta rollup["Pss"], value(@samples, "culet_process_proportional_memory_bytes"), 0.05 * rss
    private_bytes = value(@samples, "culet_process_private_memory_bytes")
    assert_in_delta rollup.values_at("Private_Clean", "Private_Dirty").sum, private_bytes, 0.05 * rss
    assert_in_delta rss, private_bytes + value(@samples, "culet_process_shared_memory_bytes"), 0.05 * rss
    assert_in_delta Time.now.to_f, value(@samples, "process_start_time_seconds"), 3600
    assert_operator value(@samples, "process_cpu_seconds_total"), :>, 0
  end

  def test_the_processs_own_figures
    Culet.trim
    GC.disable # no collection but the one below
    later = parse(Culet::Metrics.text)
    assert_in_delta GC.stat(:heap_live_slots), value(later, "ruby_gc_heap_slots", state: "live"), 0.1 * GC.stat(:heap_live_slots)
    GC.start
    after = parse(Culet::Metrics.text)
    assert_equal value(later, "ruby_gc_collections_total", type: "major") + 1, value(after, "ruby_gc_collections_total", type: "major")
    assert_operator value(after, "ruby_gc_time_seconds_total"), :>, value(later, "ruby_gc_time_seconds_total")
    assert_operator value(after, "culet_trims_total"), :>=, 1
    assert_operator value(after, "culet_malloc_memory_bytes", state: "used"), :>, 1_000_000
    assert_operator value(after, "culet_malloc_arenas"), :>=, 1
    assert_equal 1, value(after, "culet_process_info", ruby: RUBY_VERSION, version: Culet::VERSION)
  ensure
    GC.enable
  end

  def test_the_levels_add_up_to_what_is_resident
    levels = select(@samples, "culet_memory_level_bytes").to_h { |one| [one.labels["level"], one.value] }
    rss = value(@samples, "process_resident_memory_bytes")
    assert_in_delta rss, levels.values.sum, 0.02 * rss
    assert_equal Culet::Levels::COUNTED, levels.keys
    assert_operator levels.fetch("ruby_objects"), :>, 1_000_000
  end

  def test_on_culet_malloc_reports_what_it_returned
    code = 'a = Array.new(200) { "x" * 100_000 }; a.clear; GC.start; Culet.trim; print Culet::Metrics.text'
    out, = assert_culet_success("run", "--", RbConfig.ruby, *FLAGS, "-rculet/metrics", "-e", code)
    samples = parse(out)
    assert_equal 1, value(samples, "culet_process_info", allocator: "culet")
    assert_operator value(samples, "culet_malloc_memory_bytes", state: "returned"), :>, 5_000_000
    assert_operator value(samples, "culet_malloc_returned_bytes_total"), :>, 5_000_000
    assert_equal %w[cached free returned used], select(samples, "culet_malloc_memory_bytes").map { |one| one.labels["state"] }.sort
  end

  def test_labels_are_escaped
    text = Culet::Metrics::Exposition.text([[{ "pid" => "1" }, [["culet_profile_site_info", { "site" => "a\\b\"c\nd" }, 1]]]])
    assert text.end_with?("culet_profile_site_info{pid=\"1\",site=\"a\\\\b\\\"c\\nd\"} 1\n"), text
  end

  def test_the_largest_sites_of_the_profile
    code = <<~RUBY
      Culet::Metrics.sites = 2
      Culet::Profile.start(sample_bytes: 4096)
      $kept = Array.new(1_000) { "x" * 5_000 }
      print Culet::Metrics.text
    RUBY
    out, = assert_culet_success("run", "--", RbConfig.ruby, *FLAGS, "-rculet/metrics", "-rculet/profile", "-e", code)
    samples = parse(out)
    assert_equal %w[1 2], select(samples, "culet_profile_site_bytes").map { |one| one.labels["rank"] }
    assert_match(/\A-e:3 /, select(samples, "culet_profile_site_info", rank: 1).first.labels["site"])
    assert_in_delta 5_000_000, value(samples, "culet_profile_site_bytes", rank: 1), 2_000_000
    [-1, 101, "3", nil].each { |number| assert_raises(ArgumentError) { Culet::Metrics.sites = number } }
  end

  def test_the_limit_that_culet_limit_keeps
    refute_includes Culet::Metrics.text, "culet_limit"
    samples = parse(run_ruby(<<~RUBY))
      module Culet
        module Limit
          def self.status = { "limit_bytes" => 100, "source" => "setting", "used_bytes" => 60, "headroom_bytes" => 40, "steps" => [] }
        end
      end
      Culet::Metrics.start
      print Culet::Metrics.text
    RUBY
    limits = select(samples, "culet_limit_bytes") + select(samples, "culet_limit_used_bytes") + select(samples, "culet_limit_headroom_bytes")
    assert_equal [[{}, 100.0], [{}, 60.0], [{}, 40.0]], limits.map { |one| [one.labels, one.value] }
  end

  def test_promtool_finds_nothing_wrong
    promtool = program_or_skip("promtool")
    out, err, status = run_program(promtool, "check", "metrics", stdin: Culet::Metrics.text)
    assert_equal ["", "", true], [out, err, status.success?]
  end

  # Names that a later version of the kernel's or Ruby's figures may lack are left out, not made up.
  def test_every_family_has_a_sentence_and_a_name_for_opentelemetry
    Culet::Metrics::FAMILIES.each_value do |family|
      assert_match(/\A[A-Z].*\.\z/, family.help)
      assert_match(/\A[a-z][a-z0-9_.]+\z/, family.otel_name)
      assert_equal family.type == :counter, family.name.end_with?("_total"), family.name
      assert_equal family.type == :info, family.name.end_with?("_info"), family.name
    end
  end
end
