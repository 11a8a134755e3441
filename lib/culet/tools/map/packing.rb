# frozen_string_literal: true

require "zlib"

module Culet
  module Map
    # Packs what a picture is made of, which takes seconds for gigabytes of heap, and may be interrupted meanwhile.
    #
    # Ruby's zlib closes a stream that was interrupted, and zlib's deflateEnd answers Z_DATA_ERROR for one that is not at
    # its end; what Ruby then raises takes the place of what interrupted it (zlib.c, zstream_end).
    module Packing
      module_function

      # @param bytes [String]
      # @return [String] zlib's format in base64
      def base64(bytes) = [interruptible { Zlib.deflate(bytes) }].pack("m0")

      # @yield packs something
      # @return [Object] what the block returns
      # @raise [Exception] what interrupted it, such as Interrupt
      def interruptible
        yield
      rescue Zlib::DataError => e
        raise e.cause || e, cause: nil
      end
    end
  end
end
