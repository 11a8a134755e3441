# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"

module Culet
  module Live
    # Estimates the shared memory of a process between two readings of smaps_rollup, from the counters in its stat.
    #
    # Resident memory that comes or goes is private. A page fault that brings no resident memory has copied a page that
    # was shared, or has brought back one that had been returned: which part of them were copies is known of the time
    # between the last two readings.
    class Sharing
      # Fewer faults tell nothing.
      LEAST_FAULTS = 16
      # A process that did nothing is read after so many seconds: others may have changed what they share with it.
      REST_SECONDS = 60
      # A second counts as much as so many faults.
      FAULTS_PER_SECOND = 10
      private_constant :LEAST_FAULTS, :REST_SECONDS, :FAULTS_PER_SECOND

      # @return [Float, nil] part of the faults without resident memory that copied a page; nil: not known yet
      attr_reader :copied

      # @param rollup [Processes::Rollups::Entry]
      # @param stat [Processes::Stat::Reading] of the same moment, if the entry is new
      def note(rollup, stat)
        return if rollup.time == @time

        figures = rollup.figures
        own = figures["private_bytes"]
        learn(own, stat) if @time
        @time = rollup.time
        @stat = stat
        @proportional, @shared, @swap = figures.values_at("pss_bytes", "shared_bytes", "swap_bytes")
        @private = own
        @first_private ||= own
      end

      # @param stat [Processes::Stat::Reading]
      # @param copied [Float] part of the faults that counts as long as this process's own is not known
      # @return [Hash{String => Integer}] "rss_bytes", "pss_bytes", "private_bytes", "shared_bytes", "swap_bytes",
      #   "growth_bytes"
      def memory(stat, copied)
        grown = stat.resident_bytes - @stat.resident_bytes
        unshared = [(faulted_bytes(stat) * (@copied || copied)).to_i, @shared].min
        own = [@private + grown + unshared, 0].max
        { "rss_bytes" => stat.resident_bytes, "pss_bytes" => [@proportional + grown + unshared, 0].max,
          "private_bytes" => own, "shared_bytes" => @shared - unshared, "swap_bytes" => @swap,
          "growth_bytes" => own - @first_private }
      end

      # @param stat [Processes::Stat::Reading]
      # @return [Numeric] how much may have changed since the last reading, in faults; 0: nothing
      def change(stat)
        return 0 unless @time

        age = Clock.now - @time
        faults = stat.faults - @stat.faults
        return 0 if faults.zero? && stat.resident_bytes == @stat.resident_bytes && age < REST_SECONDS

        faults + (age * FAULTS_PER_SECOND)
      end

      private

      # The resident memory in smaps_rollup and that in stat differ by some pages: the kernel counts the latter in
      # batches.
      def learn(own, stat)
        faulted = faulted_bytes(stat)
        return if faulted < LEAST_FAULTS * Processes::Memory::PAGE_BYTES

        unshared = own - @private - (stat.resident_bytes - @stat.resident_bytes)
        @copied = unshared.fdiv(faulted).clamp(0.0, 1.0)
      end

      # @return [Integer] bytes of faults that brought no resident memory
      def faulted_bytes(stat)
        faults = (stat.faults - @stat.faults) * Processes::Memory::PAGE_BYTES
        [faults - [stat.resident_bytes - @stat.resident_bytes, 0].max, 0].max
      end
    end
  end
end
