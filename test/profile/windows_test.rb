# frozen_string_literal: true

require "test_helper"

# How long a window of object sampling stays open: ext/culet/profile/windows.c alone, without Ruby, by a clock that the
# program moves.
class ProfileWindowsTest < Minitest::Test
  WINDOW_NANOSECONDS = 250_000

  def test_the_part_of_a_span_that_is_in_the_window_prolongs_it
    path = TestHelper.build("-std=c11", "-D_GNU_SOURCE", "-I#{ROOT}/ext/culet", "-I#{ROOT}", "#{ROOT}/test/profile/windows.c",
                            *%w[profile/windows common/thread].map { |name| "#{ROOT}/ext/culet/#{name}.c" }, "-pthread", "-lm")
    [0, 5_000_000].each do |before|
      assert_equal "#{WINDOW_NANOSECONDS}\n", IO.popen([path, before.to_s], &:read), "begun #{before} ns before it"
    end
  end
end
