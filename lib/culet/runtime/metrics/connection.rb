# frozen_string_literal: true

module Culet
  module Metrics
    # One connection of the server: receives the head of one request, then sends the answer, without blocking.
    class Connection
      # Longest head of a request, in bytes.
      REQUEST_BYTES = 16 << 10
      # Bytes of an answer that are sent at a time.
      PART_BYTES = 256 << 10
      private_constant :REQUEST_BYTES, :PART_BYTES

      # @return [BasicSocket]
      attr_reader :socket

      # @return [String] the address of the other side, without the port
      attr_reader :peer

      # @return [Float] the time at which the connection is dropped, of CLOCK_MONOTONIC
      attr_reader :deadline

      # @param socket [BasicSocket]
      # @param deadline [Float] for the request to arrive, of CLOCK_MONOTONIC
      def initialize(socket, deadline)
        @socket = socket
        @peer = socket.remote_address.then { |address| address.ip? ? address.ip_address : "" }
        @deadline = deadline
        @head = "".b
        @answer = nil
      end

      # @return [Boolean] whether an answer is being sent
      def answering? = !@answer.nil?

      # Receives the bytes that have arrived.
      #
      # @return [String, nil] the head of the request, once it is complete
      # @raise [IOError, SystemCallError] if the head is too long, or the client has gone
      def receive
        part = @socket.read_nonblock(REQUEST_BYTES, exception: false)
        return if part == :wait_readable
        raise EOFError, "the client has gone" if part.nil?

        @head << part
        raise IOError, "the request is too long" if @head.bytesize > REQUEST_BYTES

        @head if @head.include?("\r\n\r\n") || @head.include?("\n\n")
      end

      # @param text [String] the answer
      # @param deadline [Float] for the answer to be received, of CLOCK_MONOTONIC
      def answer(text, deadline)
        @answer = text.b
        @sent = 0
        @deadline = deadline
      end

      # Sends as much of the answer as the kernel takes now.
      #
      # @return [Boolean] whether the answer is complete
      # @raise [IOError, SystemCallError] if the client has gone
      def send_part
        sent = @socket.write_nonblock(@answer.byteslice(@sent, PART_BYTES), exception: false)
        @sent += sent unless sent == :wait_writable
        return false if @sent < @answer.bytesize

        @socket.shutdown # a process that is forked meanwhile has the socket too
        true
      end

      # @return [void]
      def close = @socket.close
    end
  end
end
