# frozen_string_literal: true

require_relative "../../model/levels"
require_relative "../../system/clock"
require_relative "../../system/processes/memory"

module Culet
  module Metrics
    # Metrics that only the process itself can read: Ruby's heap, malloc, trims, and the levels of its memory.
    #
    # An idle worker shares its heap with its parent, and a new object would copy a shared page. The values therefore
    # go into the same objects each time.
    class OwnReading
      # Name and labels of each value, in order.
      KEYS = [
        *%w[live free].map { |state| ["ruby_gc_heap_slots", { "state" => state }] },
        *%w[minor major].map { |type| ["ruby_gc_collections_total", { "type" => type }] },
        ["ruby_gc_time_seconds_total", {}], ["ruby_gc_allocated_objects_total", {}],
        *%w[used free returned cached].map { |state| ["culet_malloc_memory_bytes", { "state" => state }] },
        ["culet_malloc_returned_bytes_total", {}], ["culet_malloc_arenas", {}],
        ["culet_trims_total", {}], ["culet_trims_skipped_total", {}], ["culet_trim_returned_bytes_total", {}],
        ["culet_trim_seconds_total", {}],
        *Levels::COUNTED.map { |level| ["culet_memory_level_bytes", { "level" => level }] }
      ].each(&:freeze).freeze
      # Index of the first value of each part.
      RUBY = 0
      MALLOC = 6
      TRIMS = 12
      LEVELS = 16
      # Bytes to read of /proc/self/statm, more than its length.
      STATM_BYTES = 256
      private_constant :RUBY, :MALLOC, :TRIMS, :LEVELS, :STATM_BYTES

      # @param packed [String] of `pack`
      # @return [Array<Array(String, Hash{String => String}, Numeric)>, nil] name, labels and value; nil: invalid
      def self.unpack(packed)
        return unless packed.bytesize == KEYS.size * 8

        KEYS.zip(packed.unpack("G*")).filter_map do |(name, labels), value|
          next if value.nan?
          return nil unless value.finite? && value.abs < 1e18

          [name, labels, value == value.to_i ? value.to_i : value]
        end
      end

      # @param root [String] the folder that has /proc
      def initialize(root: "/")
        @values = Array.new(KEYS.size)
        @stat = {}
        @counters = {}
        @statm = File.open(File.join(root, "proc/self/statm"))
        @text = +""
      end

      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples = OwnReading.unpack(pack)

      # @return [String] packed numbers, one per key; NaN: unknown
      def pack
        @values.fill(Float::NAN)
        GC.stat(@stat)
        ruby
        malloc
        trims
        levels
        @values.pack("G*")
      end

      private

      def set(index, value)
        @values[index] = value if value
      end

      # A collector loaded as a library may lack some counts.
      def ruby
        set(RUBY, @stat[:heap_live_slots])
        set(RUBY + 1, @stat[:heap_free_slots])
        set(RUBY + 2, @stat[:minor_gc_count])
        set(RUBY + 3, @stat[:major_gc_count])
        set(RUBY + 4, GC.total_time / 1e9) if GC.respond_to?(:total_time)
        set(RUBY + 5, @stat[:total_allocated_objects])
      end

      def malloc
        count_blocks if Culet.native? && Clock.now >= @next_count.to_f
        return unless @malloc

        used, free, returned, cached, total, arenas = @malloc
        set(MALLOC, used)
        set(MALLOC + 1, free - returned.to_i - cached.to_i)
        set(MALLOC + 2, returned)
        set(MALLOC + 3, cached)
        set(MALLOC + 4, total)
        set(MALLOC + 5, arenas)
      end

      # At intervals that ext/culet/reading/budget.h decides.
      def count_blocks
        began = Clock.processor_time
        @malloc = Culet.send(:malloc_totals)
        @next_count = Clock.now + ((Clock.processor_time - began) * Reading::REST_PER_COST)
      end

      def trims
        return unless Culet.native?

        stats = Culet.trim_stats
        return unless stats[:active] || stats[:trims].positive?

        set(TRIMS, stats[:trims])
        set(TRIMS + 1, stats[:skipped])
        set(TRIMS + 2, stats[:returned_bytes])
        set(TRIMS + 3, stats[:seconds])
      end

      # A collector loaded as a library may have neither slots nor pages.
      def levels
        pages = @stat[:heap_allocated_pages]
        page_bytes = GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE]
        *, used, free, metadata = @malloc
        @counters["ruby_page_bytes"] = pages && page_bytes && (pages * page_bytes)
        @counters["live_slots"] = @stat[:heap_live_slots]
        @counters["slots"] = @stat[:heap_available_slots]
        @counters["malloc_used_bytes"] = used
        @counters["malloc_metadata_bytes"] = metadata
        @counters["malloc_free_bytes"] = free
        found = Levels.counted(*Processes::Memory.statm(@statm.pread(STATM_BYTES, 0, @text)), @counters)
        Levels::COUNTED.each_with_index { |name, index| set(LEVELS + index, found[name]) }
      end
    end
  end
end
