# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Metrics
    # What a process knows of itself: Ruby's heap, malloc, trims, and the levels of its memory.
    #
    # An idle worker shares its heap with its parent, and each new object takes a slot of a shared page. So the figures
    # are collected into the same objects each time.
    class Figures
      # Name and labels of each value, in order. Levels have the names of the report's ledger, and add up to the
      # resident memory.
      KEYS = [
        *%w[live free].map { |state| ["ruby_gc_heap_slots", { "state" => state }] },
        *%w[minor major].map { |type| ["ruby_gc_collections_total", { "type" => type }] },
        ["ruby_gc_time_seconds_total", {}], ["ruby_gc_allocated_objects_total", {}],
        *%w[used free returned cached].map { |state| ["culet_malloc_memory_bytes", { "state" => state }] },
        ["culet_malloc_returned_bytes_total", {}], ["culet_malloc_arenas", {}],
        *%w[ruby_objects ruby_free_slots ruby_page_overhead malloc_used malloc_metadata malloc_free libraries_and_files
            unexplained].map { |level| ["culet_memory_level_bytes", { "level" => level }] },
        ["culet_trims_total", {}], ["culet_trims_skipped_total", {}], ["culet_trim_returned_bytes_total", {}],
        ["culet_trim_seconds_total", {}]
      ].each(&:freeze).freeze
      # Of the first value of each part.
      RUBY = 0
      MALLOC = 6
      LEVELS = 12
      TRIMS = 20
      # Counting malloc's blocks takes longer the more there are, and under glibc requests that call malloc wait for it
      # then. So after a count, this many times its duration pass before the next.
      REST = 10_000
      # More than /proc/self/status.
      STATUS_BYTES = 8 << 10
      # Of a Ruby that does not say how large a slot is.
      LEAST_SLOT = 40
      private_constant :LEAST_SLOT, :RUBY, :MALLOC, :LEVELS, :TRIMS, :REST, :STATUS_BYTES

      # @param packed [String] of `pack`
      # @return [Array<Array(String, Hash{String => String}, Numeric)>, nil] name, labels and value; nil: it is invalid
      def self.unpack(packed)
        return unless packed.bytesize == KEYS.size * 8

        KEYS.zip(packed.unpack("G*")).filter_map do |(name, labels), value|
          next if value.nan?
          return nil unless value.finite? && value.abs < 1e18

          [name, labels, value == value.to_i ? value.to_i : value]
        end
      end

      def initialize
        @values = Array.new(KEYS.size)
        @stat = {}
        @heaps = {}
        @status = File.open("/proc/self/status")
        @text = +""
      end

      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples = Figures.unpack(pack)

      # @return [String] a number for each key, NaN for what is unknown
      def pack
        @values.fill(Float::NAN)
        GC.stat(@stat)
        GC.stat_heap(nil, @heaps) if GC.respond_to?(:stat_heap)
        ruby
        malloc
        levels
        trims
        @values.pack("G*")
      end

      private

      def set(index, value)
        @values[index] = value if value
      end

      # Not every collector counts everything.
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

      def count_blocks
        start = Clock.now
        @malloc = Culet.send(:malloc_totals)
        done = Clock.now
        @next_count = done + ((done - start) * REST)
      end

      def levels
        @status.pread(STATUS_BYTES, 0, @text)
        anonymous = status("RssAnon:")
        files = status("RssFile:") + status("RssShmem:")
        known = ruby_levels
        known += malloc_levels(anonymous - known)
        set(LEVELS + 6, files)
        set(LEVELS + 7, anonymous - known)
      end

      def status(field)
        at = @text.index(field)
        at ? @text.byteslice(at + field.bytesize, 16).to_i * 1024 : 0
      end

      # Ruby keeps slots of several sizes since 3.2, and counts live ones by size since 3.4. Another collector than
      # Ruby's own may have neither slots nor pages.
      #
      # @return [Integer] bytes in these levels
      def ruby_levels
        pages = @stat[:heap_allocated_pages]
        slots = @stat[:heap_available_slots]
        live = @stat[:heap_live_slots]
        page = GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE]
        return 0 unless pages && live && page && slots&.positive?

        all = slot_bytes(:heap_eden_slots) || slots * GC::INTERNAL_CONSTANTS.fetch(:RVALUE_SIZE, LEAST_SLOT)
        objects = slot_bytes(:heap_live_slots) || all * live / slots
        page_bytes = pages * page
        set(LEVELS, objects)
        set(LEVELS + 1, all - objects)
        set(LEVELS + 2, [page_bytes - all, 0].max)
        [page_bytes, all].max
      end

      # @return [Integer, nil] nil if this Ruby does not count it by size
      def slot_bytes(key)
        return if @heaps.empty?

        @heaps.each_value.sum do |heap|
          return nil unless heap[key]

          heap[:slot_size] * heap[key]
        end
      end

      # What is free may have been returned, which glibc does not count: it has at most what the others leave.
      #
      # @return [Integer] bytes in these levels
      def malloc_levels(rest)
        return 0 unless @malloc

        used, free, returned, _, _, _, metadata = @malloc
        metadata = metadata.to_i
        free = (free - returned.to_i).clamp(0, [rest - used - metadata, 0].max)
        set(LEVELS + 3, used)
        set(LEVELS + 4, metadata)
        set(LEVELS + 5, free)
        used + metadata + free
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
    end
  end
end
