# frozen_string_literal: true

require_relative "../../scope/region"

module Culet
  module Cow
    # Bytes in use between two addresses of a region: prefix sums over the runs of pages with equal use.
    class FillIndex
      # @param region [Scope::Region]
      # @param page_bytes [Integer]
      def initialize(region, page_bytes:)
        @base = region.start - (region.start % page_bytes)
        @page_bytes = page_bytes
        @firsts = []
        @sums = []
        @each = []
        page = sum = 0
        region.fill_runs.each do |count, used|
          @firsts << page
          @sums << sum
          @each << used
          page += count
          sum += count * used
        end
        @pages = page
      end

      # @param first [Integer] address of a page, or the region's start
      # @param past [Integer] address behind a page, or the region's end
      # @return [Integer]
      def used_bytes(first, past)
        up_to((past - @base + @page_bytes - 1) / @page_bytes) - up_to((first - @base) / @page_bytes)
      end

      private

      # @return [Integer] bytes in use in the pages before that one
      def up_to(page)
        page = [page, @pages].min
        return 0 unless page.positive?

        index = (@firsts.bsearch_index { |first| first >= page } || @firsts.size) - 1
        @sums[index] + ((page - @firsts[index]) * @each[index])
      end
    end
  end
end
