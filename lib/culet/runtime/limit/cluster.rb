# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Limit
    # The workers that a parent has forked. Their memory is added up by the extension (ext/culet/limit/cluster.h).
    class Cluster
      # @param memory [#rollup] as Processes::Memory
      # @yield [Array<Integer>] the workers
      def initialize(memory: Processes::Memory, &workers)
        @memory = memory
        @workers = workers
      end

      # Tells the extension which workers there are. A process that is forked meanwhile is in the next list.
      #
      # @return [void]
      def list
        forks = Limit.send(:forks)
        Limit.send(:workers, @workers.call, forks)
      end

      # @return [Array(Integer, Integer), nil] the worker with the most private memory, and how much that is
      def largest
        @workers.call.map { |pid| [pid, private_bytes(pid)] }.max_by(&:last)
      end

      private

      def private_bytes(pid) = @memory.rollup(pid).fetch("private_bytes", 0)
    end
  end
end
