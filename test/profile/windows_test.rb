# frozen_string_literal: true

require "test_helper"

# When a window of object sampling opens, and how long it stays open: ext/culet/profile/windows.c alone, without Ruby, by
# a clock that the program moves.
class ProfileWindowsTest < Minitest::Test
  WINDOW_NANOSECONDS = 250_000
  GAP_NANOSECONDS = 25_000_000

  def test_the_part_of_a_span_that_is_in_the_window_prolongs_it
    [0, 5_000_000].each do |before|
      assert_equal "#{WINDOW_NANOSECONDS}\n", run_windows("span", before), "begun #{before} ns before it"
    end
  end

  # But for the first 64 windows: 0.5 % of a core up to 512, then 0.2 %. Each part has 64 gaps, which are exponentially
  # distributed.
  def test_expensive_windows_are_as_rare_as_their_share_asks
    first, *others = parts(2_000_000)
    assert_operator first.last, :<, 64 * GAP_NANOSECONDS
    { 0.005 => others.first(7), 0.002 => others.drop(8) }.each do |share, list|
      cost, time = list.transpose.map(&:sum)
      assert_in_delta 1, cost / (share * time), 6 / Math.sqrt(64 * list.size), "#{cost} of #{time} ns"
    end
  end

  def test_cheap_windows_are_25_ms_apart
    time = parts(10_000).drop(1).sum(&:last)
    assert_in_delta 1, time / (31.0 * 64 * (GAP_NANOSECONDS + WINDOW_NANOSECONDS)), 6 / Math.sqrt(31 * 64)
  end

  private

  # @return [Array<Array(Integer, Integer)>] processor time and time of parts of 64 windows
  def parts(cost) = run_windows("cost", cost).lines.map { |line| line.split.map(&:to_i) }

  def run_windows(kind, nanoseconds)
    path = TestHelper.build("-std=c11", "-D_GNU_SOURCE", "-I#{ROOT}/ext/culet", "-I#{ROOT}", "#{ROOT}/test/profile/windows.c",
                            *%w[profile/windows common/thread].map { |name| "#{ROOT}/ext/culet/#{name}.c" }, "-pthread", "-lm")
    IO.popen([path, kind, nanoseconds.to_s], &:read)
  end
end
