# frozen_string_literal: true

module Culet
  class Diagnosis
    # How much of malloc's free memory a process needs again in the course of a watch.
    #
    # What is free at one reading may be in use at the next one. Each page is counted by the readings at which a block
    # of it was in use: once, twice, or more often. Pages that no reading has seen in use may have been in use in
    # between; how many is estimated as the number of species that no sample has (A. Chao, "Nonparametric Estimation of
    # the Number of Classes in a Population", 1984).
    class Reuse
      # How often pages are counted apart.
      TIMES = 3
      private_constant :TIMES

      def initialize
        @seen = Array.new(TIMES) { Hash.new(0) }
        @points = []
        @busy = []
        @lately = []
      end

      # @param snapshot [Scope::Snapshot]
      # @param levels [Hash{String => Integer}] of SnapshotLevels
      def add(snapshot, levels)
        return unless snapshot.malloc && snapshot.allocator.blocks?

        @page_bytes = snapshot.process.page_bytes
        @points << levels.values_at("malloc_used", "malloc_free")
        count(snapshot.regions.select(&:malloc?).to_h { |region| [region.start, mask(region)] })
      end

      # @return [Boolean] whether there is more than one reading
      def known? = @points.size > 1

      # @return [Float] free bytes, in the mean of the readings
      def free_bytes = @points.sum(&:last).fdiv(@points.size)

      # @return [Integer] bytes of all pages with a block in use, at the reading with most of them
      def peak_bytes = @busy.max

      # @return [Float] bytes that are in use at a reading or at the one before, in whole pages, in the mean of them
      def lately_bytes = @lately.sum.fdiv(@lately.size)

      # @return [Array<Numeric>] bytes of pages that are free all the time: at most, and at least
      def unused_bytes = [resident_bytes - seen_bytes, resident_bytes - seen_bytes - unseen_bytes]

      # @return [Float] bytes of malloc, used and free, in the mean of the readings
      def resident_bytes = @points.sum(&:sum).fdiv(@points.size)

      private

      # @param masks [Hash{Integer => Integer}] by start of the regions
      def count(masks)
        @busy << masks.each_value.sum { |mask| bytes(mask) }
        @lately << masks.sum { |start, mask| bytes(mask | @last.fetch(start, 0)) } if @last
        @last = masks
        masks.each do |start, mask|
          @seen.each { |seen| seen[start], mask = seen[start] | mask, seen[start] & mask }
        end
      end

      # @return [Integer] a bit for each page, the lowest one for the first page: regions grow at their end
      def mask(region)
        region.fill_runs.map { |pages, used| (used.zero? ? "0" : "1") * pages }.join.reverse.to_i(2)
      end

      def seen_bytes = @seen.first.values.sum { |mask| bytes(mask) }

      def unseen_bytes
        sums = @seen.map { |seen| seen.values.sum { |mask| bytes(mask) } }
        once, twice = sums.each_cons(2).map { |one, other| one - other }
        once * once / [2 * twice, @page_bytes].max
      end

      def bytes(mask) = @page_bytes * mask.to_s(2).count("1")
    end
  end
end
