# frozen_string_literal: true

require_relative "../address_ranges"
require_relative "../../scope/snapshot"

module Culet
  module Cow
    # Address ranges of pages in a given state.
    module PageRanges
      module_function

      # @yieldparam bits [Integer] state of the pages, see Scope::Mapping
      # @yieldreturn [Boolean] whether to include them
      # @return [Array<Array(Integer, Integer)>] start and end of each range, sorted; adjacent ranges are joined
      def of(snapshot)
        bytes = snapshot.process.page_bytes
        snapshot.mappings.each_with_object([]) do |mapping, found|
          mapping.each_run(bytes) do |first, past, bits|
            next unless yield(bits)

            found.last&.last == first ? found.last[1] = past : found << [first, past]
          end
        end
      end
    end

    # Resident bytes by sharing with a related process.
    #
    # shared: other processes map the page too; unshared: private, and the related process has a page at the same
    # address; fresh: private, and the related process has none; own: private, without a related process to compare
    # with.
    SharingBytes = Struct.new(:shared, :unshared, :fresh, :own) do
      # @return [SharingBytes] zero bytes
      def self.none = new(0, 0, 0, 0)

      # @param sharing [Symbol] one of the members
      def add(sharing, bytes) = self[sharing] += bytes

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
        related = RangeCursor.new(@relative) if @relative
        @snapshot.mappings.each do |mapping|
          mapping.each_run(@page_bytes) do |first, past, bits|
            next unless Mapping.resident?(bits)
            next yield(mapping, first, past, :shared) if (bits & Mapping::EXCLUSIVE).zero?
            next yield(mapping, first, past, :own) unless related

            compare(related, mapping, first, past, &block)
          end
        end
      end

      # @return [Array<Array(Integer, Integer)>] start and end of each range of unshared pages
      def unshared = to_enum.filter_map { |_, first, past, how| [first, past] if how == :unshared }

      private

      # Runs come in address order: one pass over the related process's pages suffices.
      def compare(related, mapping, first, past)
        related.each(first, past) do |_, from, to|
          yield mapping, first, from, :fresh if from > first
          yield mapping, from, to, :unshared
          first = to
        end
        yield mapping, first, past, :fresh if first < past
      end

      # Pages in memory or swapped out.
      def ranges(snapshot)
        found = PageRanges.of(snapshot) do |bits|
          bits & (Mapping::PRESENT | Mapping::SWAPPED) != 0 && (bits & Mapping::ZERO).zero?
        end
        found.map { |first, past| AddressRange.new(first, past) }
      end
    end
  end
end
