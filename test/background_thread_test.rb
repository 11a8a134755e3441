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

  def test_its_value
    assert_equal 3, Culet::BackgroundThread.start("culet-test") { 3 }.value
  end
end
