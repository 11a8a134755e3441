# frozen_string_literal: true

require_relative "memory"

module Culet
  module Processes
    # smaps_rollup of many processes, repeatedly. The kernel walks all pages of a process for it, some 13 ms per GB. So
    # a round takes no more than some processor time: the oldest figures are read again, and those of new processes.
    class Rollups
      # time: of the reading, of CLOCK_MONOTONIC; start: which process has the number; figures: as of Memory.rollup
      Entry = Struct.new(:time, :start, :figures)

      def initialize
        @entries = {}
      end

      # @param starts [Hash{Integer => Object}] for each process number, what tells the process from a later one of the
      #   same number
      # @param seconds [Float] of processor time that the round may take
      # @return [Hash{Integer => Entry}] time and figures of those that may be read
      def call(starts, seconds:)
        @entries.select! { |pid, entry| starts[pid] == entry.start }
        deadline = processor_time + seconds
        starts.keys.sort_by { |pid| @entries[pid]&.time || 0 }.each do |pid|
          break if @entries[pid] && processor_time > deadline

          read(pid, starts[pid])
        end
        @entries
      end

      private

      def read(pid, start)
        figures = Memory.rollup(pid)
        now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
        @entries[pid] = Entry.new(now, start, figures) unless figures.empty?
      end

      # The walk is the caller's: on a busy machine the time that passes is longer.
      def processor_time = ::Process.clock_gettime(::Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end
