# frozen_string_literal: true

require_relative "../../scope/region"
require_relative "page_sharing"

module Culet
  module Cow
    # Sharing by size class, for allocators that group blocks of one size.
    class SizeClasses
      LARGE = "large"
      EMPTY = "empty"
      METADATA = "metadata"
      SPECIAL = { Scope::Region::NO_BLOCKS => EMPTY, Scope::Region::LARGE_BLOCKS => LARGE }.freeze
      private_constant :SPECIAL

      def initialize(regions)
        @shares = Hash.new { |shares, name| shares[name] = SharingBytes.none }
        return if regions.all? { |region| region.slabs_payload.empty? }

        @ranges = RangeCursor.new(regions.select(&:malloc?).flat_map { |region| ranges(region) })
      end

      # @param first [Integer] address in a malloc region, not below that of the last call
      # @param past [Integer]
      # @param sharing [Symbol] a member of SharingBytes
      def add(first, past, sharing)
        @ranges&.each(first, past) { |range, from, to| @shares[range.name].add(sharing, to - from) }
      end

      # @return [Hash{Integer, String => SharingBytes}] by block size, ascending; then EMPTY (no block allocated), LARGE
      #   (blocks of no class) and METADATA. Empty for allocators without size classes
      def to_h
        sizes, others = @shares.partition { |name, _| name.is_a?(Integer) }
        [*sizes.sort_by(&:first), *others.sort_by(&:first)].to_h
      end

      private

      def ranges(region)
        if region.slabs_payload.empty?
          name = region.holds == METADATA ? METADATA : LARGE
          return [AddressRange.new(region.start, region.end, name)]
        end

        at = region.start
        found = region.slabs.map { |bytes, block| AddressRange.new(at, at += bytes, SPECIAL.fetch(block, block)) }
        found << AddressRange.new(at, region.end, EMPTY) if at < region.end
        found
      end
    end
  end
end
