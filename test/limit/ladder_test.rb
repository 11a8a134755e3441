# frozen_string_literal: true

require "limit/limit_helper"
require "minitest/mock"
require "culet"
require "culet/runtime/limit/settings"
require "culet/runtime/limit/history"
require "culet/runtime/limit/steps"
require "culet/runtime/limit/boundary"
require "culet/runtime/limit/ladder"

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
    assert_equal "culet: limit 1000 bytes: first freed 10 bytes, 890 bytes in use (89 %)", @lines.first
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
      refute restart.due?(0.95)
      time = 9
      refute restart.due?(0.95)
      restart.relieved
      time = 11
      refute restart.due?(0.95), "it was below meanwhile"
      time = 22
      assert restart.due?(0.95)
      restart.call
      time = 60
      refute restart.due?(0.95), "the interval"
      refute restart.due?(0.9), "below the critical level"
      time = 200
      refute restart.due?(0.95)
      time = 211
      assert restart.due?(0.95)
    end
    assert_equal 1, restarts
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

  def test_settings
    { "auto" => [nil, nil, nil], :auto => [nil, nil, nil], "512M" => [512 << 20, nil, nil], "2GiB" => [2 << 30, nil, nil],
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

  def ladder(*steps)
    Culet::Limit::Ladder.new(steps, history: @history, used: -> { @usage[:used] }, limit: -> { 1000 })
  end
end
