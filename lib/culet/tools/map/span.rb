# frozen_string_literal: true

module Culet
  module Map
    # Addresses that are shown side by side: whole pages, from `first` up to `past`.
    #
    # regions: the Scope::Regions in it, in address order; mapping: the Scope::Mapping that it is the rest of, else nil.
    Span = Struct.new(:first, :past, :regions, :mapping, keyword_init: true) do
      # @param region [Scope::Region]
      # @param page_bytes [Integer]
      # @return [Span] the pages that the region touches
      def self.of(region, page_bytes)
        new(first: region.start / page_bytes * page_bytes, past: -(-region.end / page_bytes) * page_bytes, regions: [region])
      end

      # A heap of glibc's is a strip of its own, however near it lies to the next.
      #
      # @param other [Span] the next one
      # @return [Boolean] whether both are one strip
      def joins?(other) = other.first <= past && regions.last.holds != "heap" && other.regions.first.holds != "heap"

      # @param other [Span] the next one, which joins
      # @return [Span]
      def +(other) = Span.new(first: first, past: [past, other.past].max, regions: regions + other.regions)
    end
  end
end
