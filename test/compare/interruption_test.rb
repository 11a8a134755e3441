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

  PATIENCE_SECONDS = 60
  private_constant :PATIENCE_SECONDS
end
