# frozen_string_literal: true

require "zlib"

module Culet
  # Compression that can be interrupted: gigabytes of heap take seconds. When Ruby closes an interrupted stream,
  # deflateEnd returns Z_DATA_ERROR, and the exception for that replaces the Interrupt (zlib.c, zstream_end).
  module Packing
    module_function

    # @param bytes [String]
    # @return [String] a zlib stream in base64
    def base64(bytes) = [interruptible { Zlib.deflate(bytes) }].pack("m0")

    # @yield compresses
    # @return [Object] the block's value
    # @raise [Exception] the interruption, such as Interrupt
    def interruptible
      yield
    rescue Zlib::DataError => e
      raise e.cause || e, cause: nil
    end
  end
end
