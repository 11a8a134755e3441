# frozen_string_literal: true

require_relative "../../scope/snapshot"
require_relative "page_ranges"

module Culet
  module Cow
    # Resident bytes by sharing with a related process.
    #
    # shared: other processes map the page too; unshared: private, and the related process has a page at the same
    # address; fresh: private, and the related process has none; own: private, without a related process to compare
    # with.
    SharingBytes = Struct.new(:shared, :unshared, :fresh, :own) do
      # @return [SharingBytes] zero bytes
      def self.none = new(0, 0, 0, 0)

      # @param sharing [Symbol] one of the members
      # @param bytes [Integer]
      def add(sharing, bytes) = self[sharing] += bytes

      # @param other [SharingBytes]
      # @return [SharingBytes] the sum
      def +(other) = SharingBytes.new(*to_a.zip(other.to_a).map(&:sum))

      # @return [Integer] bytes that only this process maps
      def private = unshared + fresh + own

      # @return [Integer] bytes that existed at the fork
      def inherited = shared + unshared

      # @return [Integer]
      def resident = shared + private

      # @return [Hash{String => Integer}] for a JSON document
      def document
        { "shared_bytes" => shared, "private_bytes" => self.private, # rubocop:disable Style/RedundantSelf
          "unshared_bytes" => unshared, "fresh_bytes" => fresh }
      end
    end

    # Compares each resident page of a process with the related process's page at the same address: a child with its
    # parent, a parent with one of its children. The kernel only shows whether one process alone maps a page (bit 56 of
    # its pagemap entry). A page that both processes created at the same address after the fork therefore counts as
    # unshared.
    class PageSharing
      Mapping = Scope::Mapping
      private_constant :Mapping

      # @param snapshot [Scope::Snapshot]
      # @param relative [Scope::Snapshot, nil]
      def initialize(snapshot, relative: nil)
        @snapshot = snapshot
        @page_bytes = snapshot.process.page_bytes
        @relative = relative && ranges(relative)
      end

      # Yields the resident pages in address order, in ranges of equal sharing.
      #
      # @yieldparam mapping [Scope::Mapping]
      # @yieldparam first [Integer] address
      # @yieldparam past [Integer] address
      # @yieldparam sharing [Symbol] a member of SharingBytes
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

      # Runs come in address order: one pass over the related process's pages suffices.
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

      # Pages in memory or swapped out.
      def ranges(snapshot)
        PageRanges.of(snapshot) do |bits|
          bits & (Mapping::PRESENT | Mapping::SWAPPED) != 0 && (bits & Mapping::ZERO).zero?
        end
      end
    end
  end
end
