# frozen_string_literal: true

require_relative "../../scope/snapshot"
require_relative "extents"

module Culet
  module Cow
    # How each resident page of a process stands to its relative's page at the same address: for a forked process its
    # parent, for a parent one of its children. All that can be told from outside is that a page is mapped by one process
    # alone (bit 56 of its pagemap entry) and that the other one has a page there too. A page that both of them made after
    # the fork, at the same address by chance, is taken for one they once shared.
    class Standing
      Mapping = Scope::Mapping
      private_constant :Mapping

      # @param snapshot [Scope::Snapshot]
      # @param relative [Scope::Snapshot, nil]
      def initialize(snapshot, relative: nil)
        @snapshot = snapshot
        @page_bytes = snapshot.process.page_bytes
        @relative = relative && extents(relative)
      end

      # Yields the resident pages in address order, in runs that stand alike.
      #
      # @yieldparam mapping [Scope::Mapping]
      # @yieldparam first [Integer] address
      # @yieldparam past [Integer] address
      # @yieldparam standing [Symbol] a member of Shares
      def each(&block)
        @at = 0
        @snapshot.mappings.each do |mapping|
          first = mapping.start
          mapping.page_runs.each do |count, bits|
            past = first + (count * @page_bytes)
            run(mapping, first, past, bits, &block) if bits & (Mapping::PRESENT | Mapping::ZERO) == Mapping::PRESENT
            first = past
          end
        end
      end

      private

      def run(mapping, first, past, bits, &block)
        return yield(mapping, first, past, :shared) if (bits & Mapping::EXCLUSIVE).zero?
        return yield(mapping, first, past, :own) unless @relative

        compare(mapping, first, past, &block)
      end

      # Runs come in address order, so that one pass over the relative's pages is enough.
      def compare(mapping, first, past)
        @at += 1 while @at < @relative.size && @relative[@at].last <= first
        index = @at
        while first < past
          from, to = @relative[index]
          if from.nil? || from >= past
            yield mapping, first, past, :fresh
            break
          end
          yield mapping, first, from, :fresh if from > first
          first = [first, from].max
          yield mapping, first, [to, past].min, :unshared
          first = [to, past].min
          index += 1
        end
      end

      # Where a process has pages, in memory or swapped out.
      def extents(snapshot)
        Extents.of(snapshot) { |bits| bits & (Mapping::PRESENT | Mapping::SWAPPED) != 0 && (bits & Mapping::ZERO).zero? }
      end
    end
  end
end
