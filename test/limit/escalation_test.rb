# frozen_string_literal: true

require "limit/limit_helper"
require "minitest/mock"
require "culet"
require "culet/runtime/limit/settings"
require "culet/runtime/limit/history"
require "culet/runtime/limit/restart"
require "culet/runtime/limit/boundary"
require "culet/runtime/limit/escalation"
require "culet/runtime/limit/puma"
require "culet/runtime/limit/sidekiq"
require "culet/runtime/limit/threads"

# The order of the steps, each only if those before did not suffice; settings; boundaries.
class EscalationTest < Minitest::Test
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
    escalation(Frees.new("first", 10, @usage), Frees.new("second", 100, @usage), Frees.new("third", 100, @usage)).call
    assert_equal %w[first second], @history.steps.map { |step| step["step"] }
    assert_equal([10, 100], @history.steps.map { |step| step["freed_bytes"] })
    assert_equal "culet: limit 1.00 kB: first freed 10 bytes, 890 bytes in use (89 %)", @lines.first
  end

  def test_the_same_step_is_logged_once_in_an_interval
    time = 0.0
    Process.stub(:clock_gettime, ->(*) { time }) do
      3.times { |bytes| @history.add("trim", freed: 10 + bytes, used: 900, limit: 1000) }
      @history.add("collection", freed: 20, used: 900, limit: 1000, detail: "at once")
      assert_equal 2, @lines.size
      2.times { @history.add("restart", freed: nil, used: 900, limit: 1000, detail: "x") }
      assert_equal ["culet: limit 1.00 kB: restart (x), 900 bytes in use (90 %)"] * 2, @lines.last(2), "each restart"
      time = 10
      @history.add("trim", freed: 4, used: 890, limit: 1000, detail: "in the background", times: 1109)
    end
    assert_equal "culet: limit 1.00 kB: trim (in the background, 1111 times) freed 27 bytes, 890 bytes in use (89 %)", @lines.last
    assert_equal 7, @history.steps.size
  end

  def test_a_step_that_frees_next_to_nothing_is_logged_once
    time = 0.0
    Process.stub(:clock_gettime, ->(*) { time += 100 }) do
      5.times { @history.add("trim", freed: 1, used: 900, limit: 1000) }
      assert_equal 1, @lines.size
      assert_match(/ freed 1 byte, 900 bytes in use \(90 %\); repeated less often, and not logged until it frees more\z/, @lines.first)
      @history.add("trim", freed: 20, used: 880, limit: 1000)
      assert_match(/trim \(5 times\) freed 24 bytes, 880 bytes in use \(88 %\)\z/, @lines.last)
    end
    assert_equal 2, @lines.size
  end

  def test_a_limit_is_printed_as_it_was_set
    [400 << 20, 2 << 30, 419_430_401].each { |limit| @history.add(limit.to_s, freed: limit / 2, used: limit / 2, limit: limit) }
    assert_equal ["400 MiB", "2 GiB", "419 MB"], @lines.map { |line| line[/\Aculet: limit (.*?):/, 1] }
  end

  def test_a_collection_that_frees_next_to_nothing_doubles_the_pause
    collection = Culet::Limit::Steps::Collection.new(Culet::Limit::Boundary.new)
    time = 0
    Culet::Clock.stub(:now, -> { time }) do
      GC.stub(:start, -> { time += 1 }) { Culet.stub(:trim, nil) { collection.call } }
      pauses = Array.new(7) do
        ended = time
        collection.freed(0.009, 0.95, 1)
        time = (ended..).find { |second| (time = second) && collection.due?(0.95) }
        time - ended
      end
      assert_equal [10, 20, 40, 80, 160, 240, 240], pauses, "five times what it took, doubled up to four minutes"
      ended = time
      collection.freed(0.009, 0.95, 1)
      time = ended + 6
      refute collection.due?(0.95)
      assert collection.due?(0.97), "more is in use"
      refute collection.due?(0.91)
      assert collection.due?(0.89), "far less was in use meanwhile"
      collection.freed(0.01, 0.95, 1)
      time += 6
      assert collection.due?(0.95), "it was of use"
    end
  end

  def test_below_the_alarm_level_nothing_is_done
    @usage[:used] = 849
    escalation(Frees.new("first", 10, @usage)).call
    assert_empty @history.steps
  end

  def test_passes_that_do_not_suffice_come_less_often_until_more_is_in_use
    useless = escalation(Frees.new("first", 0, @usage))
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
    Culet::Clock.stub(:now, -> { time }) do
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
    throttle = throttle(-> { used }) { |_| used = 949 if (naps += 1) == 3 }
    assert_operator throttle.pass, :>, 0
    assert_equal 3, naps
    assert_in_delta 0.0, throttle.pass
  end

  # Its usage is what it needs.
  def test_a_program_that_stays_at_its_limit_is_held_back_once
    used = 955
    time = 0.0
    throttle = throttle(-> { used }) { |seconds| time += seconds }
    Culet::Clock.stub(:now, -> { time }) do
      assert_in_delta 10.0, throttle.pass, 0.1
      assert_in_delta 0.0, throttle.pass
      used = 965
      assert_in_delta 10.0, throttle.pass, 0.1, "it grows"
      used = 900
      assert_in_delta 0.0, throttle.pass
      used = 955
      assert_in_delta 10.0, throttle.pass, 0.1
    end
  end

  def test_a_process_that_ends_finishes_its_requests
    assert_in_delta 0.0, throttle(-> { 999 }, ends: true) { flunk "it waits" }.pass
    assert_in_delta 0.0, throttle(-> { 999 }, limit: nil) { flunk "it waits" }.pass
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

  def test_the_worker_with_the_most_private_memory
    bytes = { 11 => 13, 12 => 14, 13 => 12 }
    Culet::Limit::Worker.stub(:private_bytes, bytes.method(:fetch)) { assert_equal [12, 14], Culet::Limit::Cluster.new { bytes.keys }.largest }
  end

  # On a busy machine it is still there after the interval between two restarts.
  def test_a_worker_that_was_told_to_end_is_not_told_again
    pids = Array.new(3) { spawn("sleep", "600") }.sort
    puma, cluster = cluster_of(pids)
    with_limit_stubbed do
      assert_equal pids.last(2).reverse, Array.new(2) { puma.send(:restart_one, cluster)[/worker (\d+)/, 1].to_i }
      assert_equal :nothing, puma.send(:restart_one, cluster), "one serves"
      assert_equal %w[TERM TERM], pids.last(2).map { |pid| Signal.signame(Process.wait2(pid).last.termsig) }
      pids.pop # and is not replaced yet
      pids.push(spawn("sleep", "600"))
      refute_equal :nothing, puma.send(:restart_one, cluster)
    end
  ensure
    (pids || []).each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    rescue SystemCallError
      next # it was waited for
    end
  end

  # A thread pool as of Puma 8.
  Pool = Struct.new(:min_threads, :max_threads) do
    def resize(min, max)
      self.min_threads = min
      self.max_threads = max
    end
  end

  def test_threads_are_taken_away_and_given_back
    pool = Pool.new(2, 5)
    threads = Culet::Limit::Steps::Threads.new(pool, @lines.method(:push))
    time = 0.0
    Culet::Clock.stub(:now, -> { time }) do
      refute threads.due?(0.89)
      assert threads.due?(0.9)
      assert_equal ["5 to 2", [2, 2]], [threads.call, pool.to_a]
      refute threads.due?(0.95), "what it frees is not known yet"
      time = 2.0
      assert threads.due?(0.9)
      assert_equal ["2 to 1", [1, 1]], [threads.call, pool.to_a]
      time = 4.0
      refute threads.due?(0.99), "one is left"
      [10, 39.9, 41, 60, 71].each { |second| (time = second) && threads.relieved }
      assert_equal [2, 5], pool.to_a
      refute_predicate threads, :pending?
    end
    assert_equal ["culet: 2 threads again, after 1", "culet: 5 threads again, after 2"], @lines
  end

  def test_a_program_that_resizes_its_pool_keeps_its_size
    pool = Pool.new(2, 8)
    threads = Culet::Limit::Steps::Threads.new(pool, @lines.method(:push))
    time = 0.0
    Culet::Clock.stub(:now, -> { time }) do
      threads.call
      pool.max_threads = 3
      [1, 40].each { |second| (time = second) && threads.relieved }
    end
    assert_equal [3, []], [pool.max_threads, @lines]
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

  # @return [Array] what restarts the workers of a Puma, and the cluster that they are; the last one has the most memory
  def cluster_of(pids)
    worker = Struct.new(:pid) { def booted? = true }
    launcher = Struct.new(:options).new({ workers: pids.size })
    runner = Object.new
    launcher.instance_variable_set(:@runner, runner)
    cluster = Culet::Limit::Cluster.new do
      runner.instance_variable_set(:@workers, pids.map { |pid| worker.new(pid) })
      pids.dup
    end
    cluster.pids
    [Culet::Limit::Puma.new(launcher), cluster]
  end

  # What the class asks of culet/limit, which is not loaded here.
  def with_limit_stubbed(&block)
    open = Struct.new(:pass).new(0.0)
    by_number = proc { Culet::Limit::Worker.stub(:private_bytes, :itself.to_proc, &block) }
    { each_boundary: false, throttle: open, :ending= => nil }.reduce(by_number) do |inner, (name, value)|
      Culet::Limit.define_singleton_method(name) { |*| value } unless Culet::Limit.respond_to?(name)
      proc { Culet::Limit.stub(name, value, &inner) }
    end.call
  end

  # @yield [Float] instead of sleeping
  def throttle(used, ends: false, limit: 1000, &nap)
    Culet::Limit::RequestThrottle.new(limit: -> { limit }, full: ->(bytes) { used.call >= bytes }, ends: -> { ends }).tap do |throttle|
      throttle.define_singleton_method(:sleep, &nap)
    end
  end

  def escalation(*steps)
    Culet::Limit::Escalation.new(steps, history: @history, used: -> { @usage[:used] }, limit: -> { 1000 })
  end
end
