# frozen_string_literal: true

require_relative "../../scope/region"
require_relative "cursor"
require_relative "shares"

module Culet
  module Cow
    # What is shared of an allocator that keeps blocks of one size together, by that size.
    class SizeClasses
      LARGE = "large"
      EMPTY = "empty"
      METADATA = "metadata"
      SPECIAL = { Scope::Region::NO_BLOCKS => EMPTY, Scope::Region::LARGE_BLOCKS => LARGE }.freeze
      # A stretch of addresses that is divided in one way.
      Stretch = Struct.new(:start, :end, :name)
      private_constant :SPECIAL, :Stretch

      # @param regions [Array<Scope::Region>]
      def initialize(regions)
        @shares = Hash.new { |shares, name| shares[name] = Shares.none }
        @stretches = regions.any? { |region| !region.slabs_payload.empty? } ? Cursor.new(regions.select(&:malloc?).flat_map { |region| stretches(region) }) : nil
      end

      # @param first [Integer] address in a region of malloc's; not before that of the last call
      # @param past [Integer]
      # @param standing [Symbol] a member of Shares
      def add(first, past, standing) = @stretches&.each(first, past) { |stretch, from, to| @shares[stretch.name].add(standing, to - from) }

      # @return [Hash{Integer, String => Shares}] by the bytes of a block, the smallest first; then LARGE blocks, which are of
      #   no class, memory of which nothing is given out (EMPTY), and METADATA. Empty where the allocator has no such classes
      def to_h
        sizes, others = @shares.partition { |name, _| name.is_a?(Integer) }
        [*sizes.sort_by(&:first), *others.sort_by(&:first)].to_h
      end

      private

      def stretches(region)
        return [Stretch.new(region.start, region.end, region.holds == METADATA ? METADATA : LARGE)] if region.slabs_payload.empty?

        at = region.start
        found = region.slabs.map { |bytes, block| Stretch.new(at, at += bytes, SPECIAL.fetch(block, block)) }
        found << Stretch.new(at, region.end, EMPTY) if at < region.end
        found
      end
    end
  end
end
