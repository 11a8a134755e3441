# frozen_string_literal: true

require "socket"
require_relative "../../system/clock"

module Culet
  module Live
    # Writes to one browser. One that takes nothing for some seconds is given up.
    class Client
      # The browser is too slow, or has gone.
      class Lost < StandardError; end

      STALL_SECONDS = 10.0
      # At most so much is under way to a browser in the kernel; it does not grow then.
      BUFFER_BYTES = 256 << 10
      PART_BYTES = 64 << 10
      private_constant :BUFFER_BYTES, :PART_BYTES

      # @param socket [TCPSocket]
      # @param stall_seconds [Float] longest time for 64 kB
      def initialize(socket, stall_seconds: STALL_SECONDS)
        @socket = socket
        @stall = stall_seconds
        @socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_SNDBUF, BUFFER_BYTES)
      end

      # @raise [Lost]
      def write(text)
        at = 0
        while at < text.bytesize
          part = text.byteslice(at, PART_BYTES)
          write_part(part)
          at += part.bytesize
        end
      rescue SystemCallError, IOError
        raise Lost
      end

      private

      def write_part(part)
        deadline = Clock.now + @stall
        until part.empty?
          written = @socket.write_nonblock(part, exception: false)
          if written == :wait_writable
            left = deadline - Clock.now
            raise Lost unless left.positive? && @socket.wait_writable(left)
          else
            part = part.byteslice(written..)
          end
        end
      end
    end
  end
end
