# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "culet/tools/top/readings"

# The thread that reads moments for `culet top`.
class TopReadingsTest < Minitest::Test
  # On a busy machine the next reading's time comes between two looks at the clock: here it always has.
  def test_a_reading_that_is_late_is_taken_at_once
    moments = [{ "at" => 1.0 }, { "at" => 2.0 }, nil]
    found = []
    time = 0.0
    Culet::Clock.stub(:now, -> { time += 1 }) do
      readings = Culet::Top::Readings.new(moments.dup.method(:shift), every: 0.2)
      until found.include?(nil)
        assert readings.io.wait_readable(PATIENCE_SECONDS), "there is no reading after #{found}"
        found.concat(readings.take)
      end
    ensure
      readings&.close
    end
    assert_equal moments, found
  end
end
