# frozen_string_literal: true

require "rubies"
require "trim/trim_helper"

# culet/auto on other Rubies than the one that runs the tests, and under collectors that a Ruby loads as libraries
# (RUBY_GC_LIBRARY): are collections seen there, and is there a trim after them?
class TrimRubiesTest < Minitest::Test
  include TrimHelper

  # One that is asked for, and two that Ruby makes by itself, whose sweeps are lazy.
  COLLECTIONS = {
    "asked_for" => "litter(60); GC.start",
    "by_itself" => "litter(60); kept = []; seen = GC.stat(:major_gc_count); " \
                   "kept << Array.new(1_000) { [] } until GC.stat(:major_gc_count) > seen + 1"
  }.freeze

  def setup
    skip "run by bin/test --all" unless all_tests?
  end

  Rubies.all.each do |ruby|
    name = ruby.path.tr("^A-Za-z0-9.", "_")

    define_method("test_on#{name}") { try(ruby) }

    define_method("test_under_collectors_of_their_own_on#{name}") do
      collectors = ruby.collectors
      skip "#{ruby.path} has no collector to load: CULET_TEST_RUBIES may name a Ruby configured --with-modular-gc" if collectors.empty?

      collectors.each { |collector| try(ruby, collector) }
    end
  end

  private

  # @param collector [String, nil] for RUBY_GC_LIBRARY
  def try(ruby, collector = nil)
    Dir.mktmpdir("culet-rubies") do |folder|
      @run = { ruby: ruby.path, lib: ruby.library(folder), env: { "RUBY_GC_LIBRARY" => collector } }
      assert_match(/\+GC\[#{collector}\]/, run_trimmed("tell(RUBY_DESCRIPTION)", **@run).first) if collector
      assert_each_major_collection_is_seen_once
      COLLECTIONS.each { |what, script| assert_memory_goes_back(what, script) }
      assert_seen_from_other_ractors
      assert_forks_trim
    end
  end

  def assert_each_major_collection_is_seen_once
    differences, majors, = run_trimmed(<<~RUBY, **@run).first
      GC.start
      difference = -> { GC.stat(:major_gc_count) - Culet.trim_stats[:requested] }
      differences = [difference.call]
      began = GC.stat(:major_gc_count)
      differences << difference.call.tap { 5.times { GC.start } }
      differences << difference.call.tap { GC.start(full_mark: false) }
      differences << difference.call.tap { GC.start(full_mark: true, immediate_sweep: false) }
      kept = Array.new(300_000) { |index| [index] }
      GC.start
      differences << difference.call
      tell([differences, GC.stat(:major_gc_count) - began, kept.size])
    RUBY
    assert_equal 1, differences.uniq.size, differences.inspect
    assert_operator majors, :>=, 6
  end

  def assert_memory_goes_back(what, script)
    told = run_trimmed(<<~RUBY, **@run).first
      #{script}
      tell(fell: wait_until { Culet.trim_stats[:returned_bytes] > 35_000_000 }, stats: Culet.trim_stats)
    RUBY
    assert told[:fell], "#{what}: #{told}"
    assert_equal ["background", true, nil], told[:stats].values_at(:mode, :thread, :problem)
  end

  def assert_seen_from_other_ractors
    told = run_trimmed(<<~RUBY, "-W:no-experimental", warnings: false, **@run).first
      before = Culet.trim_stats[:requested]
      ractor = Ractor.new { 3.times { GC.start }; Ractor.receive }
      tell([wait_until { Culet.trim_stats[:requested] >= before + 3 }, Culet.trim_stats])
      ractor.send(1)
    RUBY
    assert told.first, told.inspect
  end

  def assert_forks_trim
    statuses = run_trimmed(<<~RUBY, **@run).first
      GC.start
      pids = Array.new(4) { fork { litter(20); GC.start; exit!(wait_until { Culet.trim_stats[:returned_bytes] > 10_000_000 } ? 0 : 1) } }
      tell(pids.map { |pid| Process.wait2(pid).last.exitstatus })
    RUBY
    assert_equal [0] * 4, statuses
  end
end
