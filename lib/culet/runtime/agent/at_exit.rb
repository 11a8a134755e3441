# frozen_string_literal: true

require "socket"
require_relative "../../agent"

module Culet
  module Agent
    # Loaded first into every Ruby process of a command of `culet retain` or `profile`: starts the agent, and waits at
    # exit until culet has read the process.
    module AtExit
      # The variable with the path of culet's socket.
      SOCKET = "CULET_AT_EXIT"
      # "1": Ruby records where objects are allocated.
      TRACE = "CULET_TRACE_ALLOCATIONS"

      module_function

      # @return [void]
      def prepare
        return unless Culet.native? && ENV.key?(SOCKET)

        trace if ENV[TRACE] == "1"
        # at_exit handlers run in reverse order: those of the program have run before.
        at_exit { wait(ENV.fetch(SOCKET)) }
      end

      def trace
        require "objspace"
        ObjectSpace.trace_object_allocations_start
      end

      # culet reads the process's number from the kernel, and closes the connection when it has read the process.
      # Without culet the process does not wait.
      def wait(path)
        UNIXSocket.open(path, &:read)
      rescue SystemCallError
        nil
      end

      private_class_method :trace, :wait
    end
  end
end

Culet::Agent::AtExit.prepare
