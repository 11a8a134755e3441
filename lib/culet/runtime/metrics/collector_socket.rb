# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "../../errors"
require_relative "../../system/clock"

module Culet
  module Metrics
    # The way to the collector, which forked processes inherit: one end of a pair of sockets without a name, so that no
    # other process can find it, and no file remains. Each message carries a socket.
    class CollectorSocket
      # The socket of a process that answers requests, or the receiver of a scrape's text.
      PROCESS = "process"
      TEXT = "text"
      # The collector's request for the metrics of a process.
      QUESTION = "?"
      # The answer of a process that cannot read its metrics at the moment.
      FAILURE = "!"
      # Time limit of the collector for a text, in seconds.
      PATIENCE = 5
      private_constant :PATIENCE

      # @param socket [UNIXSocket]
      def initialize(socket)
        @socket = socket
      end

      # @return [void]
      def close = @socket.close

      # @param message [String]
      # @raise [SystemCallError] if the collector has ended
      def pass(message, other)
        @socket.sendmsg_nonblock(message, 0, nil, Socket::AncillaryData.unix_rights(other))
      ensure
        other.close
      end

      # @return [String, nil] the text of a scrape; nil if the collector has ended
      # @raise [Culet::Error] when the collector does not answer in time, or a process lacks descriptors
      def text
        TRIES.times do
          found = ask
          return found if found
        end
        raise Error, REFUSAL
      rescue *ENDED
        nil
      rescue IO::WaitWritable
        raise Error, SILENCE
      rescue SystemCallError => e
        raise Error, "the metrics cannot be collected at the moment: #{e.message}"
      end

      # A process that is forked meanwhile has the socket too, so the end of a text is not the end of the stream.
      #
      # @return [String] the text after its size, as `text` receives it
      def self.pack(text) = [text.bytesize].pack("Q>") << text.b

      # Errors of `pass` without a collector.
      ENDED = [Errno::EPIPE, Errno::ECONNRESET, Errno::ECONNREFUSED].freeze
      SILENCE = "the process that collects the metrics does not answer"
      # The collector has closed the socket, for lack of descriptors, for example.
      REFUSAL = "the process that collects the metrics cannot do so at the moment"
      # A collector that ends while it answers can close three requests: the current one, the next one in its queue, and
      # one that arrives before it closes its own socket.
      TRIES = 4
      SIZE_BYTES = 8
      private_constant :SILENCE, :REFUSAL, :TRIES, :SIZE_BYTES

      private

      def ask
        mine, theirs = UNIXSocket.pair
        pass(TEXT, theirs)
        read(mine)
      ensure
        mine&.close
      end

      # @return [String, nil] nil if the other end was closed without an answer
      def read(socket)
        bytes = "".b
        deadline = Clock.now + PATIENCE
        until complete?(bytes)
          part = socket.read_nonblock(1 << 18, exception: false)
          return if part.nil?
          raise Error, SILENCE if Clock.now >= deadline

          part == :wait_readable ? socket.wait_readable(0.1) : bytes << part
        end
        bytes.byteslice(SIZE_BYTES..).force_encoding(Encoding::UTF_8)
      end

      def complete?(bytes) = bytes.bytesize >= SIZE_BYTES && bytes.bytesize >= SIZE_BYTES + bytes.unpack1("Q>")
    end
  end
end
