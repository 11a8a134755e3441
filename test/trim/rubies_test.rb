# frozen_string_literal: true

require "rubies"
require "trim/trim_helper"

# culet/auto on other Rubies than the one that runs the tests, and under collectors that a Ruby loads as libraries
# (RUBY_GC_LIBRARY): are collections seen there, and is there a trim after them?
class TrimRubiesTest < Minitest::Test
  include TrimHelper

  # A collector that does not count major collections has no others: MMTk's plans in Ruby 4.0.
  MAJORS = "def majors = GC.stat.then { |stat| stat.fetch(:major_gc_count) { stat.fetch(:count) } }\n"

  # One that is asked for, and two that Ruby makes by itself, whose sweeps are lazy.
  COLLECTIONS = {
    "asked_for" => "litter(60); GC.start",
    "by_itself" => "litter(60); kept = []; seen = majors; kept << Array.new(1_000) { [] } until majors > seen + 1"
  }.freeze

  # What a collector that marks in threads of its own could trip over, and the exit status.
  CIRCUMSTANCES = {
    "stress" => ["GC.stress = true; 200.times { Object.new }; GC.stress = false; exit(5)", 5],
    "threads" => ["Array.new(30) { Thread.new { 20.times { Array.new(300) { 'x' * rand(2_000) }; Culet.trim } } }.each(&:join); exit(5)", 5],
    "forks" => ["exit(Array.new(20) { fork { GC.start; Culet.trim; exit(5) } }.map { |pid| Process.wait2(pid).last.exitstatus }.uniq == [5] ? 5 : 6)", 5],
    "exit" => ["sleep 0.1; exit(5)", 5],
    "exit!" => ["sleep 0.1; exit!(5)", 5],
    "exec" => ["sleep 0.1; exec('sh', '-c', 'exit 5')", 5],
    "disabled" => ["GC.disable; 20_000.times { [] }; Culet.trim; exit(5)", 5]
  }.freeze

  def setup
    skip_unless_all
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
      CIRCUMSTANCES.each { |what, (script, expected)| assert_ends(what, script, expected) }
      assert_warms_up
    end
  end

  def assert_each_major_collection_is_seen_once
    differences, counted, first, = run_trimmed(<<~RUBY, "-robjspace", **@run).first
      #{MAJORS}
      before = Culet.trim_stats[:requested]
      GC.start
      first = Culet.trim_stats[:requested] > before
      difference = -> { majors - Culet.trim_stats[:requested] }
      differences = [difference.call]
      began = majors
      differences << difference.call.tap { 5.times { GC.start } }
      differences << difference.call.tap { GC.start(full_mark: false) }
      differences << difference.call.tap { GC.start(full_mark: true, immediate_sweep: false) }
      kept = Array.new(300_000) { |index| [index] }
      GC.start
      differences << difference.call
      ObjectSpace.dump_all(output: File.open(File::NULL, "w"))
      ObjectSpace.reachable_objects_from_root
      differences << difference.call
      tell([differences, majors - began, first, kept.size])
    RUBY
    assert first, "the first one is not seen"
    assert_equal 1, differences.uniq.size, differences.inspect
    assert_operator counted, :>=, 6
  end

  def assert_memory_goes_back(what, script)
    told = run_trimmed(<<~RUBY, **@run).first
      #{MAJORS}
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

  # What is free at the heap's end glibc gives back by itself: something has to lie behind it.
  def assert_forks_trim
    statuses = run_trimmed(<<~RUBY, **@run).first
      GC.start
      work = lambda do
        litter(20)
        last = "x" * 100_000
        GC.start
        exit!(wait_until { Culet.trim_stats[:returned_bytes] > 10_000_000 } && last.size == 100_000 ? 0 : 1)
      end
      pids = Array.new(4) { fork(&work) }
      tell(pids.map { |pid| Process.wait2(pid).last.exitstatus })
    RUBY
    assert_equal [0] * 4, statuses
  end

  # With collections and trims under way all the while.
  def assert_ends(what, script, expected)
    busy = "busy = Thread.new { loop { Array.new(1_000) { 'x' * 1_000 }; GC.start; sleep 0.001 } }"
    env = TestHelper::NEUTRAL.merge(@run[:env]).merge("CULET_TRIM" => "interval=0,minimum=0")
    out, err, status = run_program(@run[:ruby], "-w", "-I#{@run[:lib]}", "-rculet/auto", "-e", "#{busy}\n#{script}", env: env)
    assert_equal ["", expected, nil], [out + err, status.exitstatus, status.termsig], what
  end

  def assert_warms_up
    collections, stats = run_trimmed("litter(40); before = GC.count; Culet.warmup; tell([GC.count - before, Culet.trim_stats])", **@run).first
    assert_operator collections, :>=, 1
    assert_operator stats[:trims], :>=, 1
  end
end
