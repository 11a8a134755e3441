# frozen_string_literal: true

require "test_helper"

# When a trim is due: ext/culet/trim/policy.c alone, without Ruby and without a clock.
class TrimPolicyTest < Minitest::Test
  MB = 1_000_000
  INTERVAL = 0.25
  LONGEST = 60.0

  def self.program
    @program ||= TestHelper.build("-std=c11", "-I#{ROOT}/ext/culet", "#{ROOT}/test/trim/policy.c", "#{ROOT}/ext/culet/trim/policy.c")
  end

  def test_the_first_trim_waits_for_the_sweep_alone
    assert_equal [100.0], ask("due", 50 * MB, 1, 100.0)
    assert_in_delta 100.3, ask("due", 50 * MB, 0, 100.0).first # whether the sweep has ended is not known: when idle
  end

  def test_the_minimum_interval_is_kept_whatever_comes
    assert_in_delta 10 + INTERVAL, ask(*note(10, 0.0001, 60, 50), "due", 50 * MB, 1, 10.0).first
    assert_in_delta 310, ask(*note(10, 0.0001, 60, 50), "due", 50 * MB, 1, 0.0, interval: 300).first
  end

  # A hundredth of the time, unless the program is idle.
  def test_a_long_trim_is_paid_for
    assert_in_delta 4.0, ask(*note(10, 0.04, 100, 50), "interval", 50 * MB).first
    assert_in_delta 14.0, ask(*note(10, 0.04, 100, 50), "due", 50 * MB, 1, 14.0).first
    assert_in_delta 10.7, ask(*note(10, 0.04, 100, 50), "due", 50 * MB, 1, 10.4).first
    assert_in_delta 10.5, ask(*note(10, 0.2, 100, 50), "due", 50 * MB, 1, 10.0).first # ten times would be 2 s
    assert_equal LONGEST, ask(*note(10, 5, 100, 50), "interval", 50 * MB).first
  end

  # 1 us for each page of 4 KiB, a hundred times.
  def test_what_comes_straight_back_is_paid_for
    answers = ask(*note(10, 0.001, 500, 100), "interval", 100 * MB, "interval", 200 * MB, "interval", 500 * MB, "interval", 900 * MB,
                  "refaulted", 99 * MB, "refaulted", 300 * MB, "refaulted", 900 * MB)
    steady, some, all, more = answers
    assert_in_delta INTERVAL, steady
    assert_in_delta 0.1 + (100.0 * MB / 4096 * 1e-6 * 100), some
    assert_in_delta 0.1 + (400.0 * MB / 4096 * 1e-6 * 100), all
    assert_equal all, more
    assert_equal [0, 200 * MB, 400 * MB], answers.drop(4)
  end

  # Each of them gives back 50 MB, and 100 are resident again at the next. An idle program does not want its memory back.
  def test_what_comes_straight_back_time_and_again_goes_back_ever_less_often
    notes = (1..12).map { |index| note(index, 0.0001, 100, 50) }
    waits = (1..12).map { |many| ask(*notes.first(many).flatten, "interval", 50 * MB).first }
    assert_equal [0.25, 0.5, 1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST, LONGEST], waits
    assert_in_delta 50.3, ask(*notes.flatten, "due", 50 * MB, 1, 50.0).first
    stays = note(20, 0.0001, 55, 50)
    assert_equal [INTERVAL], ask(*notes.flatten, *stays, *note(30, 0.0001, 51, 50), "interval", 50 * MB)
  end

  # 3 MB went back. Where the program has grown by more than an eighth since before, these are not what it is about.
  def test_ineffective_trims
    asked = [51, 52, 60, 61, 300].flat_map { |resident| ["ineffective", resident * MB] }
    assert_equal [0, 1, 1, 0, 0], ask(*note(10, 0.0001, 53, 50), *asked)
    assert_equal [0, 0], ask(*note(10, 0.0001, 50.5, 50), "ineffective", 50.5 * MB, "ineffective", 50 * MB) # less than the minimum
  end

  def test_fruitless_trims_come_ever_less_often_until_there_is_something_again
    notes = (1..7).map { |index| note(index, 0.0001, 50.1, 50) }
    assert_equal([0.25, 0.5, 1, 2, 4, 8, 16], (1..7).map { |many| ask(*notes.first(many).flatten, "interval", 50 * MB).first })
    long = (1..40).flat_map { |index| note(index, 0.0001, 50.1, 50) }
    assert_equal [32.0, INTERVAL], ask(*long, "interval", 50 * MB, "interval", 60 * MB) # more is resident than then
    assert_equal [INTERVAL], ask(*long, *note(50, 0.0001, 70, 50), "interval", 50 * MB)
    assert_equal [50.3], ask(*long, "due", 50 * MB, 1, 50.0) # when idle it does not matter
  end

  def test_idle
    assert_equal [0, 1], ask("idle", 10, 10.29, "idle", 10, 10.31)
  end

  private

  def note(ended, seconds, before, after) = ["record", ended, seconds, before * MB, after * MB]

  def ask(*words, interval: INTERVAL, minimum: MB)
    out, = assert_success(self.class.program, interval, minimum, *words)
    out.lines.map { |line| Float(line) }
  end
end
