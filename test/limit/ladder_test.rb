# frozen_string_literal: true

require "limit/limit_helper"
require "minitest/mock"
require "culet"
require "culet/runtime/limit/settings"
require "culet/runtime/limit/history"
require "culet/runtime/limit/restart"
require "culet/runtime/limit/boundary"
require "culet/runtime/limit/ladder"
require "culet/runtime/limit/cluster"
require "culet/runtime/limit/sidekiq"

# The order of the steps, each only if those before did not suffice; settings; boundaries.
class LadderTest < Minitest::Test
  # A step that frees a number of bytes.
  class Frees < Culet::Limit::Steps::Step
    def initialize(name, bytes, usage)
      super(name)
      @bytes = bytes
      @usage = usage
    end

    def call
      @usage[:used] -= @bytes
      nil
    end
  end

  def setup
    @usage = { used: 900 }
    @lines = []
    @history = Culet::Limit::History.new(@lines.method(:push))
  end

  def test_a_step_is_taken_only_if_those_before_did_not_suffice
    ladder(Frees.new("first", 10, @usage), Frees.new("second", 100, @usage), Frees.new("third", 100, @usage)).call
    assert_equal %w[first second], @history.steps.map { |step| step["step"] }
    assert_equal([10, 100], @history.steps.map { |step| step["freed_bytes"] })
    assert_equal "culet: limit 1.0 kB: first freed 10 bytes, 890 bytes in use (89 %)", @lines.first
  end

  def test_the_same_step_is_logged_once_in_an_interval
    time = 0.0
    Process.stub(:clock_gettime, ->(*) { time }) do
      3.times { |bytes| @history.add("trim", freed: bytes, used: 900, limit: 1000) }
      @history.add("collection", freed: 0, used: 900, limit: 1000, detail: "at once")
      assert_equal 2, @lines.size
      2.times { @history.add("restart", freed: 0, used: 900, limit: 1000) }
      assert_equal 4, @lines.size, "each restart"
      time = 10
      @history.add("trim", freed: 4, used: 890, limit: 1000, detail: "again")
    end
    assert_equal "culet: limit 1.0 kB: trim (again, 3 times) freed 7 bytes, 890 bytes in use (89 %)", @lines.last
    assert_equal 7, @history.steps.size
  end

  def test_a_collection_that_frees_next_to_nothing_doubles_the_pause
    collection = Culet::Limit::Steps::Collection.new(Culet::Limit::Boundary.new)
    time = 0
    Culet::Limit::Steps.stub(:now, -> { time }) do
      GC.stub(:start, -> { time += 1 }) { Culet.stub(:trim, nil) { collection.call } }
      pauses = Array.new(5) do
        collection.freed(0.009, 0.95)
        time = (1..).find { |second| (time = second) && collection.due?(0.95) }
        time - 1
      end
      assert_equal [10, 20, 40, 80, 80], pauses, "five times what it took, doubled up to 16 times"
      time = 6
      refute collection.due?(0.95)
      assert collection.due?(0.97), "more is in use"
      collection.freed(0.01, 0.95)
      assert collection.due?(0.95), "it was of use"
    end
  end

  def test_below_the_alarm_level_nothing_is_done
    @usage[:used] = 849
    ladder(Frees.new("first", 10, @usage)).call
    assert_empty @history.steps
  end

  def test_passes_that_do_not_suffice_come_less_often_until_more_is_in_use
    useless = ladder(Frees.new("first", 0, @usage))
    pauses = Array.new(4) { useless.call }
    assert_equal pauses.sort, pauses
    assert_operator pauses.last, :>, pauses.first
    @usage[:used] = 960
    assert_equal pauses.first, useless.call
  end

  def test_a_restart_waits_until_the_other_steps_had_their_time_and_for_its_interval
    restarts = 0
    restart = Culet::Limit::Steps::Restart.new(-> { (restarts += 1).to_s }, critical: 0.93, settle: 10, interval: 100)
    time = 0.0
    Culet::Limit::Steps.stub(:now, -> { time }) do
      refute restart.due?(0.94)
      time = 9
      refute restart.due?(0.94)
      restart.relieved
      time = 11
      refute restart.due?(0.94), "it was below meanwhile"
      time = 22
      assert restart.due?(0.94)
      restart.relieved
      refute restart.due?(0.97)
      time = 25
      assert restart.due?(0.97), "a quarter of the time just below the limit"
      restart.call
      time = 70
      refute restart.due?(0.94), "the interval"
      refute restart.due?(0.9), "below the critical level"
      time = 200
      refute restart.due?(0.94)
      time = 211
      assert restart.due?(0.94)
    end
    assert_equal 1, restarts
  end

  def test_a_request_waits_while_the_limit_is_nearly_used_up
    used = 951
    naps = 0
    gate = gate(-> { used }) { |_| used = 949 if (naps += 1) == 3 }
    assert_operator gate.pass, :>, 0
    assert_equal 3, naps
    assert_in_delta 0.0, gate.pass
  end

  # Its usage is what it needs.
  def test_a_program_that_stays_at_its_limit_is_held_back_once
    used = 955
    time = 0.0
    gate = gate(-> { used }) { |seconds| time += seconds }
    Culet::Limit::Steps.stub(:now, -> { time }) do
      assert_in_delta 10.0, gate.pass, 0.1
      assert_in_delta 0.0, gate.pass
      used = 965
      assert_in_delta 10.0, gate.pass, 0.1, "it grows"
      used = 900
      assert_in_delta 0.0, gate.pass
      used = 955
      assert_in_delta 10.0, gate.pass, 0.1
    end
  end

  def test_a_process_that_ends_finishes_its_requests
    assert_in_delta 0.0, gate(-> { 999 }, ends: true) { flunk "it waits" }.pass
    assert_in_delta 0.0, gate(-> { 999 }, limit: nil) { flunk "it waits" }.pass
  end

  def test_a_callback_that_fails_does_not_keep_the_others_from_running
    called = []
    step = Culet::Limit::Steps::Callbacks.new([-> { raise "on purpose" }, -> { called << 1 }], @lines.method(:push))
    assert_equal "2 of them", step.call
    assert_equal [1], called
    assert_equal ["culet: a callback of Culet::Limit.on(:pressure) failed: RuntimeError: on purpose"], @lines
  end

  def test_work_is_done_at_a_boundary_where_the_program_has_them
    boundary = Culet::Limit::Boundary.new
    refute boundary.run(60) { flunk "there are no boundaries" }
    boundary.pass
    thread = nil
    program = Thread.new { Thread.pass until boundary.pass || thread }
    assert(boundary.run(60) { thread = Thread.current })
    assert_same program, thread
    program.join
    refute boundary.run(0.01) { flunk "no boundary comes" }
  end

  def test_sidekiq_ends_when_its_jobs_are_done
    signals = Queue.new
    sidekiq = Culet::Limit::Sidekiq.new(signal: signals.method(:push))
    with_limit_stubbed do
      sidekiq.during_job do
        assert_match(/accepts no more jobs/, sidekiq.finish)
        assert_equal :nothing, sidekiq.finish, "once"
        assert_equal :TSTP, signals.pop
        sleep(Culet::Limit::Sidekiq::QUIET + 0.3)
        assert_empty signals, "a job runs"
      end
    end
    assert_equal :TERM, signals.pop
  end

  # What a worker shares with its parent counts once.
  def test_a_cluster_adds_up_proportional_sizes_where_that_matters
    memory = Struct.new(:rss, :pss) do
      def rss_bytes(_pid) = rss
      def pss_bytes(_pid) = pss
      def rollup(pid) = { "private_dirty_bytes" => pid, "private_clean_bytes" => 1 }
    end.new(100, 40)
    cluster = Culet::Limit::Cluster.new(memory: memory) { [11, 12] }
    assert_equal 300, cluster.used_bytes(301), "an upper bound"
    assert_equal 120, cluster.used_bytes(300)
    memory.rss = 110
    assert_equal 150, cluster.used_bytes(300), "the change since"
    assert_equal [12, 13], cluster.largest
  end

  def test_settings
    { "auto" => [nil, nil, nil], :auto => [nil, nil, nil], "512M" => [512 << 20, nil, nil], "2GiB" => [2 << 30, nil, nil],
      "512mb" => [512_000_000, nil, nil], "64KB" => [64_000, nil, nil], "3000000" => [3_000_000, nil, nil],
      "85%" => [nil, 85, nil], true => [nil, nil, nil] }.each do |value, expected|
      settings = Culet::Limit::Settings.new(value)
      assert_equal expected, [settings.bytes, settings.percent, settings.problem], value.inspect
      refute_predicate settings, :off?
    end
    [nil, "", "off", false].each { |value| assert_predicate Culet::Limit::Settings.new(value), :off? }
    ["0", "-1", "0%", "101%", "12Q", "much", "\xff"].each do |value|
      assert_match(/is not auto, a size such as 512M, or 1% to 100%\z/, Culet::Limit::Settings.new(value).problem)
    end
  end

  private

  # What the class asks of culet/limit, which is not loaded here.
  def with_limit_stubbed(&block)
    open = Struct.new(:pass).new(0.0)
    { each_boundary: false, gate: open, :ending= => nil }.reduce(block) do |inner, (name, value)|
      Culet::Limit.define_singleton_method(name) { |*| value } unless Culet::Limit.respond_to?(name)
      proc { Culet::Limit.stub(name, value, &inner) }
    end.call
  end

  # @yield [Float] instead of sleeping
  def gate(used, ends: false, limit: 1000, &nap)
    Culet::Limit::Gate.new(limit: -> { limit }, full: ->(bytes) { used.call >= bytes }, ends: -> { ends }).tap do |gate|
      gate.define_singleton_method(:sleep, &nap)
    end
  end

  def ladder(*steps)
    Culet::Limit::Ladder.new(steps, history: @history, used: -> { @usage[:used] }, limit: -> { 1000 })
  end
end
