# frozen_string_literal: true

require_relative "../snapshot_levels"
require_relative "page_sharing"
require_relative "../../scope/region"

module Culet
  module Cow
    # Bytes in use between two addresses of a region: prefix sums over the runs of pages with equal use.
    class FillIndex
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

    # Sharing of a process by use of the memory. A page is shared as a whole: its bytes are divided between used and
    # free memory in proportion to its use.
    class Breakdown
      # @param relative [Scope::Snapshot, nil] of its parent or one of its children
      def initialize(snapshot, relative: nil)
        @snapshot = snapshot
        @memory = SnapshotLevels.new(snapshot)
        @levels = Levels::TITLES.keys.to_h { |name| [name, SharingBytes.none] }
        @fills = {}
        count(PageSharing.new(snapshot, relative: relative))
      end

      # @return [Hash{String => SharingBytes}] by name of Levels; levels without resident bytes are omitted
      def levels = @levels.reject { |_, bytes| bytes.resident.zero? }

      # @return [SharingBytes] the whole process
      def total = @levels.values.reduce(:+)

      private

      def count(page_sharing)
        @regions = RangeCursor.new(@snapshot.regions)
        page_sharing.each { |mapping, first, past, sharing| divide(mapping, first, past, sharing) }
      end

      # Addresses outside the regions count by the use of their mapping.
      def divide(mapping, first, past, sharing)
        @regions.each(first, past) do |region, from, to|
          add(@memory.level_of(mapping), sharing, from - first)
          in_region(region, from, to, sharing)
          first = to
        end
        add(@memory.level_of(mapping), sharing, past - first)
      end

      def in_region(region, from, to, sharing)
        case region.holds
        when Scope::Region::RUBY then ruby(region, from, to, sharing)
        when Scope::Region::TRANSIENT then add("ruby_transient", sharing, to - from)
        else malloc(region, from, to, sharing)
        end
      end

      def ruby(region, from, to, sharing)
        live = used_bytes(region, from, to)
        add("ruby_objects", sharing, live)
        add("ruby_free_slots", sharing, to - from - live)
      end

      def malloc(region, from, to, sharing)
        return add("malloc_unsplit", sharing, to - from) unless @snapshot.allocator.blocks?
        return add("malloc_metadata", sharing, to - from) if region.holds == "metadata"

        used = used_bytes(region, from, to)
        add("malloc_used", sharing, used)
        add("malloc_free", sharing, to - from - used)
      end

      def used_bytes(region, from, to)
        fill = @fills[region.id] ||= FillIndex.new(region, page_bytes: @snapshot.process.page_bytes)
        fill.used_bytes(from, to).clamp(0, to - from)
      end

      def add(level, sharing, bytes) = @levels.fetch(level).add(sharing, bytes)
    end
  end
end
