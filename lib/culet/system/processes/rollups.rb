# frozen_string_literal: true

require_relative "../clock"
require_relative "memory"

module Culet
  module Processes
    # smaps_rollup of many processes, repeatedly. The kernel walks all pages of a process for it, some 13 ms per GB. So
    # a round takes no more than some processor time: the oldest figures are read again, or those that the caller wants
    # most, and those of new processes.
    class Rollups
      # time: of the reading, of CLOCK_MONOTONIC; start: which process has the number; figures: as of Memory.rollup
      Entry = Struct.new(:time, :start, :figures)

      # @return [Float] seconds of processor time that the last round took, without new processes
      attr_reader :spent

      # @param root [String] the folder that has /proc
      def initialize(root: "/")
        @root = root
        @entries = {}
        @spent = 0.0
      end

      # @param starts [Hash{Integer => Object}] for each process number, what tells the process from a later one of the
      #   same number
      # @param seconds [Float] of processor time that the round may take; the last reading may take it longer
      # @yieldparam pid [Integer] a process that has been read; without a block the oldest figures are read
      # @yieldreturn [Numeric] the highest are read first, 0 not at all
      # @return [Hash{Integer => Entry}] time and figures of those that may be read
      def call(starts, seconds:, &order)
        @entries.select! { |pid, entry| starts[pid] == entry.start }
        known, fresh = starts.keys.partition { |pid| @entries.key?(pid) }
        fresh.each { |pid| read(pid, starts[pid]) }
        reread(known, starts, seconds, order)
        @entries
      end

      private

      def reread(known, starts, seconds, order)
        @spent = 0.0
        return unless seconds.positive?

        began = Clock.processor_time
        wanted(known, order).each do |pid|
          read(pid, starts[pid])
          @spent = Clock.processor_time - began
          break if @spent >= seconds
        end
      end

      def wanted(pids, order)
        return pids.sort_by { |pid| @entries[pid].time } unless order

        numbers = pids.to_h { |pid| [pid, order.call(pid)] }.select { |_, number| number.positive? }
        numbers.keys.sort_by { |pid| -numbers[pid] }
      end

      def read(pid, start)
        figures = Memory.rollup(pid, root: @root)
        now = Clock.now
        @entries[pid] = Entry.new(now, start, figures) unless figures.empty?
      end
    end
  end
end
