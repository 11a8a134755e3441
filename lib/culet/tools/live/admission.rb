# frozen_string_literal: true

module Culet
  module Live
    # Which connections keep their place. Every user of the machine can connect, so those that have shown the token
    # stay, and of the others the oldest gives way to a new one.
    class Admission
      Connection = Struct.new(:thread, :socket, :known)
      private_constant :Connection

      # @param most [Integer] connections at a time
      def initialize(most:)
        @most = most
        @connections = [] # the oldest first
        @lock = Mutex.new
      end

      # Takes a connection in, which ends with the thread that calls this.
      #
      # @param socket [TCPSocket]
      # @return [void]
      def enter(socket)
        @lock.synchronize do
          @connections.select! { |one| one.thread.alive? }
          @connections << Connection.new(Thread.current, socket, false)
          give_way if @connections.size > @most
        end
      end

      # The connection of the calling thread has shown the token.
      #
      # @return [void]
      def keep
        @lock.synchronize { @connections.each { |one| one.known = true if one.thread == Thread.current } }
      end

      private

      # Ends the oldest connection without the token: its thread receives the end of the stream.
      def give_way
        oldest = @connections.find { |one| !one.known } or return
        @connections.delete(oldest)
        oldest.socket.shutdown
      rescue SystemCallError, IOError
        nil # it has ended by itself
      end
    end
  end
end
