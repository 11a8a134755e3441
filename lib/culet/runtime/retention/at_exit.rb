# frozen_string_literal: true

require "socket"
require_relative "../../agent"

module Culet
  module Retention
    # Loaded first into every Ruby process of `culet retain -- COMMAND`: starts the agent, and waits at exit until culet
    # has looked at the process.
    module AtExit
      # The variable with the path of culet's socket.
      SOCKET = "CULET_RETAIN"

      module_function

      # @return [void]
      def prepare
        return unless Culet.native? && ENV.key?(SOCKET)

        # at_exit handlers run in reverse order: those of the program have run before.
        at_exit { wait(ENV.fetch(SOCKET)) }
      end

      # culet reads the process's number from the kernel, and closes the connection when it has looked. Without culet
      # there is nothing to wait for.
      def wait(path)
        UNIXSocket.open(path, &:read)
      rescue SystemCallError
        nil
      end
      private_class_method :wait
    end
  end
end

Culet::Retention::AtExit.prepare
