# frozen_string_literal: true

module Culet
  module Map
    # A range of whole pages, from `first` up to `past`.
    #
    # regions: its Scope::Regions, in address order; mapping: the Scope::Mapping of a span outside the regions, else
    # nil.
    Span = Struct.new(:first, :past, :regions, :mapping, keyword_init: true) do
      # @param region [Scope::Region]
      # @param page_bytes [Integer]
      # @return [Span] all pages of the region
      def self.of(region, page_bytes)
        new(first: region.start / page_bytes * page_bytes, past: -(-region.end / page_bytes) * page_bytes,
            regions: [region])
      end

      # Each glibc heap has its own strip.
      #
      # @param other [Span] the next one
      # @return [Boolean] whether both form one strip
      def joins?(other) = other.first <= past && regions.last.holds != "heap" && other.regions.first.holds != "heap"

      # @param other [Span] the next one
      # @return [Span]
      def +(other) = Span.new(first: first, past: [past, other.past].max, regions: regions + other.regions)
    end
  end
end
