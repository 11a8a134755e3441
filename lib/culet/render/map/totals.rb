# frozen_string_literal: true

module Culet
  module Map
    # The figures of a snapshot, for `culet map --json`, the page and the PNG.
    class Totals
      # JSON keys of malloc; null where malloc is not walked.
      MALLOC = %w[arenas heaps used_bytes free_resident_bytes free_returned_bytes mmapped_bytes mmapped_chunks
                  metadata_bytes tcache_bytes tcache_mmapped_bytes fastbin_bytes trim_bytes pause_seconds
                  walk_seconds].freeze

      # Titles, in the order of the page.
      TITLES = {
        "rss_bytes" => "resident (RSS)", "pss_bytes" => "proportional set size (PSS)",
        "private_dirty_bytes" => "private dirty", "swap_bytes" => "swapped out",
        "used_resident_bytes" => "malloc: in use, resident",
        "used_bytes" => "malloc: in arenas, resident or not",
        "mmapped_bytes" => "malloc: in own mappings, resident or not",
        "free_resident_bytes" => "malloc: free, resident", "free_returned_bytes" => "malloc: free, returned",
        "metadata_bytes" => "malloc: metadata", "tcache_bytes" => "malloc: free, in thread caches",
        "trim_bytes" => "Culet.trim would return", "live_bytes" => "Ruby: live slots",
        "free_bytes" => "Ruby: free slots", "overhead_bytes" => "Ruby: page overhead"
      }.freeze

      # Terms of an allocator's manual; nil: the figure is always 0 there, and has no row.
      TERMS = { "glibc" => { "tcache_bytes" => "malloc: free, in tcaches", "trim_bytes" => "malloc_trim would return" },
                "culet" => { "tcache_bytes" => nil }, "musl" => { "tcache_bytes" => nil, "trim_bytes" => nil } }.freeze
      private_constant :TERMS

      def initialize(snapshot)
        @snapshot = snapshot
      end

      # @return [Hash{String => Object}] one JSON object
      def to_h
        { **process, **malloc, "allocator" => @snapshot.allocator.to_h, "process" => @snapshot.process.to_h,
          "arena_list" => @snapshot.arenas.map(&:to_h), "regions" => @snapshot.regions.map(&:to_h),
          "ruby" => @snapshot.ruby&.to_h, "sizes" => @snapshot.sizes, "problems" => @snapshot.problems }
      end

      # @return [Array<Array(String, String, Integer)>] key, title and bytes of each known figure that can differ from 0
      def rows
        figures = { **process, **malloc, **@snapshot.malloc.to_h.slice("used_resident_bytes") }
        terms = TERMS.fetch(@snapshot.allocator.name, {})
        ruby = @snapshot.ruby.to_h.slice("live_bytes", "free_bytes", "overhead_bytes")
        TITLES.filter_map do |key, title|
          value = figures.fetch(key) { ruby[key] }
          title = terms.fetch(key, title)
          [key, title, value] if title && value.is_a?(Integer)
        end
      end

      # @return [String] process and allocator
      def subject
        process = @snapshot.process
        allocator = @snapshot.allocator
        malloc = allocator.name == "none" ? "no malloc" : "malloc of #{allocator.name}"
        "#{process.called} (process #{process.pid}), #{malloc}"
      end

      private

      def process
        @snapshot.process.to_h.slice("pid", "rss_bytes", "pss_bytes", "private_dirty_bytes", "swap_bytes")
      end

      def malloc
        fields = @snapshot.malloc.to_h
        MALLOC.to_h { |key| [key, fields[key]] }
      end
    end
  end
end
