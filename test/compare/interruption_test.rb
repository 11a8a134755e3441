# frozen_string_literal: true

require "test_helper"
require "culet/system/interruption"

# The signals that end a command between two steps.
class InterruptionTest < Minitest::Test
  Interruption = Culet::Interruption

  def test_a_sleep_ends_with_the_signal_and_all_later_ones_at_once
    interruption = Culet::Interruption.new
    interruption.watch do
      refute interruption.wait(0)
      sender = Thread.new { Process.kill(:TERM, Process.pid) }
      assert interruption.wait(PATIENCE_SECONDS)
      sender.join
      assert interruption.wait(PATIENCE_SECONDS)
    end
    assert_equal ["TERM", 143], [interruption.signal, interruption.exit_status]
    assert_raises(Culet::Interrupted) { interruption.check }
  end

  def test_the_first_signal_counts
    interruption = Culet::Interruption.new
    interruption.watch do
      Process.kill(:HUP, Process.pid)
      assert interruption.wait(PATIENCE_SECONDS)
      1000.times { Process.kill(:INT, Process.pid) }
    end
    assert_equal "HUP", interruption.signal
  end

  # As when each takes longer than the pause, or when the terminal has stopped the program.
  def test_calls_that_are_late_are_not_made_up_for
    calls = 0
    Interruption.new.at_intervals(0.02, 0.1) { sleep(0.2) if (calls += 1) == 2; true }
    assert_equal 2, calls
    calls = 0
    Interruption.new.at_intervals(0.001, 0.01) { calls += 1 }
    assert_operator calls, :<=, 11
  end

  PATIENCE_SECONDS = 60
  private_constant :PATIENCE_SECONDS
end
