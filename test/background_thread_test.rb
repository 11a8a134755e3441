# frozen_string_literal: true

require "test_helper"
require "culet/system/background_thread"

class BackgroundThreadTest < Minitest::Test
  def test_it_ends_although_its_creator_defers_everything
    thread = Thread.handle_interrupt(Object => :never) { Culet::BackgroundThread.start("culet-test") { sleep } }
    Thread.pass until thread.stop?
    assert_equal "culet-test", thread.name
    assert_same thread, thread.kill.join(60)
  end

  def test_an_error_does_not_end_a_repeated_block
    calls = 0
    _, err = capture_io do
      Culet::BackgroundThread.repeat("culet-test", "nothing works") do
        calls += 1
        raise Errno::EMFILE if [1, 2, 4].include?(calls)

        :done if calls == 5
      end.join
    end
    assert_equal 5, calls
    assert_equal ["culet: nothing works at the moment: Errno::EMFILE: Too many open files\n"] * 2, err.lines, "one line for each spell"
  end

  def test_its_value
    assert_equal 3, Culet::BackgroundThread.start("culet-test") { 3 }.value
  end
end
