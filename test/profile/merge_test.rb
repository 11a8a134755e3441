# frozen_string_literal: true

require "test_helper"

# Native frames and Ruby frames in one stack: ext/culet/profile/merge.c alone, without Ruby.
class ProfileMergeTest < Minitest::Test
  def self.program
    @program ||= TestHelper.build("-std=c11", "-D_GNU_SOURCE", "-I#{ROOT}/ext/culet", "-I#{ROOT}", "#{ROOT}/test/profile/merge.c",
                                  "#{ROOT}/ext/culet/profile/merge.c")
  end

  def test_the_innermost_native_frames_come_first
    assert_equal "x0 l1 c0 r1 r2", merge("xlivll", "crr")
  end

  def test_frames_of_a_library_go_between_the_runs
    assert_equal "x0 l1 c0 r1 x5 c2 r3", merge("xlivlxivl", "crcr")
  end

  def test_frames_of_the_interpreters_library_are_left_out
    assert_equal "x0 r0 x4 x6 c1 r2 x10 c3 r4 r5", merge("xivlxlxivlxivxl", "rcrcrr")
  end

  def test_a_c_function_that_another_one_calls_is_no_run
    assert_equal "x0 c0 c1 r2", merge("xivl", "ccr")
  end

  def test_other_numbers_of_runs_leave_rubys_frames_together
    assert_equal "x0 r0 c1 r2", merge("xivlxivlxivl", "rcr")
    assert_equal "x0 r0 c1 r2", merge("xiv", "rcr")
  end

  def test_without_the_interpreter_all_native_frames_come_first
    assert_equal "x0 x1 r0 c1", merge("xx", "rc")
    assert_equal "r0", merge("", "r")
  end

  # It runs wherever Ruby checks for interrupts. What Ruby code does in it, a finalizer for example, is that code's.
  def test_deferred_work_is_not_of_the_code_that_it_interrupts
    assert_equal "x0 d1 l2 mark7", merge("xdliv", "crr")
    assert_equal "x0 r0 x4 c1 r2", merge("xivlxdliv", "rcr")
  end

  def test_a_mark_replaces_rubys_frames
    assert_equal "x0 l1 mark2", merge("xlivl", "mark", "2")
  end

  def test_what_does_not_fit_is_marked
    assert_equal "x0 r0 mark1", merge("xiv", "rrrr", env: { "MAX" => "3" })
    assert_equal "x0 x1 mark1", merge("xxxx", "mark", "3", env: { "MAX" => "3" })
  end

  private

  def merge(*words, env: {})
    out, err, status = run_program(self.class.program, *words, env: env)
    assert_equal [true, ""], [status.success?, err]
    out.strip
  end
end
