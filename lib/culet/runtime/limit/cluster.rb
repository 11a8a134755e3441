# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Limit
    # The memory of a parent and the workers that it forked, each shared page counted once: the sum of their PSS.
    class Cluster
      # The kernel walks the page tables for a PSS, so it is read once a second at most and for 0.1 % of the time. In
      # between, the change of the resident bytes is added.
      SECONDS = 1.0
      SHARE = 1000
      private_constant :SECONDS, :SHARE

      # @param memory [#pss_bytes, #rss_bytes, #rollup] as Processes::Memory
      # @yield [Array<Integer>] the workers
      def initialize(memory: Processes::Memory, &workers)
        @memory = memory
        @workers = workers
        @read = {} # process => PSS and resident bytes then
        @read_at = -Float::INFINITY
        @costs = 0
      end

      # @param exact_from [Integer] below, an upper bound that costs less will do
      # @return [Integer] bytes
      def used_bytes(exact_from)
        resident = [::Process.pid, *@workers.call].to_h { |pid| [pid, @memory.rss_bytes(pid) || 0] }
        sum = resident.each_value.sum
        return sum if sum < exact_from

        read(resident) if Steps.now > @read_at + SECONDS + (@costs * SHARE)
        resident.sum { |pid, bytes| present(pid, bytes) }
      end

      # @return [Array(Integer, Integer), nil] the worker with the most private memory, and how much that is
      def largest
        @workers.call.map { |pid| [pid, private_bytes(pid)] }.max_by(&:last)
      end

      private

      def read(resident)
        @read_at = Steps.now
        @read = resident.to_h { |pid, bytes| [pid, [@memory.pss_bytes(pid) || bytes, bytes]] }
        @costs = Steps.now - @read_at
      end

      # A worker that is new since counts in full.
      def present(pid, bytes)
        pss, resident = @read[pid]
        pss ? [pss + bytes - resident, 0].max : bytes
      end

      def private_bytes(pid) = @memory.rollup(pid).values_at("private_dirty_bytes", "private_clean_bytes").compact.sum
    end
  end
end
