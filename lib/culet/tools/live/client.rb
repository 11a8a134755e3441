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

    # Server-sent events for one page: an event per frame, whose id is the frame's number. A page that connects again
    # names the last one it has, and gets those after it.
    class EventStream
      # A comment after so many seconds without a frame shows whether the page is still there.
      BEAT_SECONDS = 10.0
      # Milliseconds until the browser connects again.
      RETRY = 1000
      private_constant :BEAT_SECONDS, :RETRY

      # @param number [Integer] of the last frame that the page has; 0: none
      def initialize(history, number)
        @history = history
        @number = number
      end

      # Writes until the page has gone, there are no more frames, or the history is stopped.
      def call(client)
        client.write("retry: #{RETRY}\n\n")
        while (frames = @history.after(@number, BEAT_SECONDS))
          client.write(frames.empty? ? ":\n\n" : "")
          frames.each { |frame| client.write("id: #{frame.number}\nevent: moment\ndata: #{frame.text}\n\n") }
          @number = frames.last.number if frames.any?
        end
        client.write("event: end\ndata: {}\n\n") unless @history.stopped?
      rescue Client::Lost
        nil # the browser connects again if the page is still open
      end
    end
  end
end
