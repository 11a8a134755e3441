# frozen_string_literal: true

require "socket"
require_relative "../../errors"
require_relative "../../system/ruby_options"

module Culet
  module Agent
    # The Ruby processes of a command at their ends: each connects to a socket, and waits until it has been looked at.
    class Ends
      FEATURE = "culet/runtime/agent/at_exit"
      private_constant :FEATURE

      # @param path [String] of the socket
      def initialize(path)
        @path = path
      end

      # @param options [String, nil] RUBYOPT of the command
      # @return [Hash{String => String}] of the command
      def environment(options) = { "RUBYOPT" => RubyOptions.loading(FEATURE, options), "CULET_AT_EXIT" => @path }

      # Receives processes until `stop`.
      #
      # @yieldparam pid [Integer] of a process that waits until the block returns
      # @raise [Culet::Error] when the path is too long
      def start(&look)
        @server = listen
        @ended, @ending = IO.pipe
        @thread = Thread.new { serve(&look) until IO.select([@server, @ended]).first.include?(@ended) }
      end

      # Processes that still wait see the end of the stream.
      def stop
        @ending&.close
        @thread&.join
        [@server, @ended].each { |io| io&.close }
      end

      private

      def listen
        UNIXServer.new(@path)
      rescue ArgumentError
        raise Error, "the path of the folder for temporary files is too long for a socket; set TMPDIR to a shorter one"
      end

      def serve
        socket = @server.accept_nonblock(exception: false)
        yield socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i") if socket.is_a?(UNIXSocket)
      ensure
        socket.close if socket.is_a?(UNIXSocket)
      end
    end
  end
end
