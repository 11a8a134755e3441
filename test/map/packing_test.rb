# frozen_string_literal: true

require_relative "map_helper"
require "culet/render/packing"

# Pictures that are packed, and what becomes of an interruption in the middle of that.
class MapPackingTest < Minitest::Test
  include MapHelper

  class Enough < StandardError; end

  # Packing it takes seconds.
  NOISE_BYTES = 64 << 20

  def test_what_is_packed
    text = "some text, some more text, " * 1_000
    assert_equal text, Zlib.inflate(Culet::Packing.base64(text).unpack1("m0"))
  end

  def test_an_interruption_comes_out_as_itself
    noise = Random.new(1).bytes(NOISE_BYTES)
    error = assert_raises(Enough) { interrupted { Culet::Packing.base64(noise) } }
    assert_nil error.cause
  end

  def test_data_that_are_wrong_are_said_to_be
    error = assert_raises(Zlib::DataError) { Culet::Packing.interruptible { Zlib.inflate("no zlib format at all") } }
    assert_nil error.cause
  end

  private

  # Runs the block in this thread, and raises Enough in it once zlib is at work: some time after it could begin.
  def interrupted(&block)
    ready = Queue.new
    main = Thread.current
    other = Thread.new do
      ready.pop
      sleep 0.2
      main.raise(Enough)
    end
    ready << true
    block.call
  ensure
    other.join
  end
end
