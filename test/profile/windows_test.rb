# frozen_string_literal: true

require "test_helper"

# When a window of object sampling opens, and how long it stays open: ext/culet/profile/windows.c alone, without Ruby, by
# a clock that the program moves.
class ProfileWindowsTest < Minitest::Test
  WINDOW_NANOSECONDS = 250_000
  GAP_NANOSECONDS = 25_000_000

  def test_the_part_of_a_span_that_is_in_the_window_prolongs_it
    with_program do |path|
      [0, 5_000_000].each do |before|
        assert_equal "#{WINDOW_NANOSECONDS}\n", IO.popen([path, "span", before.to_s], &:read), "begun #{before} ns before it"
      end
    end
  end

  # But for the first 64 windows: 0.5 % of a core up to 512, then 0.2 %. Each part has 64 gaps, which are exponentially
  # distributed.
  def test_expensive_windows_are_as_rare_as_their_share_asks
    first, *others = parts(2_000_000)
    assert_operator first.last, :<, 64 * GAP_NANOSECONDS
    { 0.005 => others.first(7), 0.002 => others.drop(8) }.each do |share, list|
      cost, time = list.transpose.map(&:sum)
      assert_in_delta 1, cost / (share * time), 4 / Math.sqrt(64 * list.size), "#{cost} of #{time} ns"
    end
  end

  def test_cheap_windows_are_25_ms_apart
    time = parts(10_000).drop(1).sum(&:last)
    assert_in_delta 1, time / (31.0 * 64 * (GAP_NANOSECONDS + WINDOW_NANOSECONDS)), 4 / Math.sqrt(31 * 64)
  end

  private

  # @return [Array<Array(Integer, Integer)>] processor time and time of parts of 64 windows
  def parts(cost)
    with_program { |path| IO.popen([path, "cost", cost.to_s]) { |io| io.each_line.map { |line| line.split.map(&:to_i) } } }
  end

  def with_program
    Dir.mktmpdir do |folder|
      path = File.join(folder, "windows")
      assert system("cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I#{ROOT}/ext/culet",
                    "-I#{ROOT}", "-o", path, "#{ROOT}/test/profile/windows.c",
                    *%w[profile/windows common/thread].map { |name| "#{ROOT}/ext/culet/#{name}.c" }, "-pthread", "-lm")
      yield path
    end
  end
end
