# frozen_string_literal: true

require_relative "../../system/kernel_file"

module Culet
  module Metrics
    # What a process knows of itself: Ruby's heap, malloc, trims, and the levels of its memory.
    class Figures
      # Counting malloc's blocks takes longer the more there are, and under glibc requests that call malloc wait for it
      # then. So after a count, this many times its duration pass before the next.
      REST = 10_000
      # The same for the profile's report, which runs beside requests.
      SITES_REST = 1_000
      # A site is named by its innermost frame of Ruby code, in so many characters.
      SITE_LENGTH = 120
      private_constant :REST, :SITES_REST, :SITE_LENGTH

      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples
        heap = GC.stat
        malloc = rested(:malloc, REST) { Culet.stats if Culet.native? }
        info + ruby(heap) + malloc(malloc) + levels(heap, malloc) + trims + sites
      end

      private

      # @return [Object] the value of the block, or an earlier one if too little time has passed since
      def rested(name, rest)
        @rested ||= {}
        earlier, again = @rested[name]
        now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
        return earlier if again && now < again

        value = yield
        done = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
        @rested[name] = [value, done + ((done - now) * rest)]
        value
      end

      def info
        @info ||= [["culet_process_info",
                    { "version" => VERSION, "ruby" => RUBY_VERSION, "ruby_engine" => RUBY_ENGINE,
                      "allocator" => Culet.native? ? Culet.allocator[:name] : "unknown" }, 1]].freeze
      end

      # Not every collector counts everything.
      def ruby(stat)
        [["ruby_gc_heap_slots", { "state" => "live" }, stat[:heap_live_slots]],
         ["ruby_gc_heap_slots", { "state" => "free" }, stat[:heap_free_slots]],
         ["ruby_gc_collections_total", { "type" => "minor" }, stat[:minor_gc_count]],
         ["ruby_gc_collections_total", { "type" => "major" }, stat[:major_gc_count]],
         ["ruby_gc_time_seconds_total", {}, GC.respond_to?(:total_time) ? GC.total_time / 1e9 : nil],
         ["ruby_gc_allocated_objects_total", {}, stat[:total_allocated_objects]]].select(&:last)
      end

      def malloc(stats)
        return [] unless stats

        returned, cached, freed, arenas = stats.values_at(:free_returned_bytes, :cached_bytes, :returned_bytes, :arenas)
        used, free, large = stats.values_at(:used_bytes, :free_bytes, :large_bytes)
        [["culet_malloc_memory_bytes", { "state" => "used" }, used + large],
         ["culet_malloc_memory_bytes", { "state" => "free" }, [free - returned.to_i - cached.to_i, 0].max],
         ["culet_malloc_memory_bytes", { "state" => "returned" }, returned],
         ["culet_malloc_memory_bytes", { "state" => "cached" }, cached],
         ["culet_malloc_returned_bytes_total", {}, freed],
         ["culet_malloc_arenas", {}, arenas]].select(&:last)
      end

      # Names as in the report's ledger. They add up to the resident memory.
      def levels(heap, malloc)
        status = KernelFile.content("/proc/self/status").to_s
        anonymous, file, shared = %w[RssAnon RssFile RssShmem].map do |name|
          status[/^#{name}:\s+(\d+) kB/, 1].to_i * 1024
        end
        ruby = ruby_levels(heap)
        levels = ruby.merge("libraries_and_files" => file + shared)
        levels.merge!(malloc_levels(malloc, anonymous - ruby.values.sum)) if malloc
        levels["unexplained"] = anonymous + file + shared - levels.values.sum
        levels.map { |level, bytes| ["culet_memory_level_bytes", { "level" => level }, bytes] }
      end

      # Ruby keeps slots of several sizes since 3.2, and counts live ones by size since 3.4.
      def ruby_levels(stat)
        pages, slots, live = stat.values_at(:heap_allocated_pages, :heap_available_slots, :heap_live_slots)
        return {} unless pages && slots&.positive? && live

        all = slot_bytes { |heap| heap[:heap_eden_slots] } || slots * GC::INTERNAL_CONSTANTS.fetch(:RVALUE_SIZE)
        objects = slot_bytes { |heap| heap[:heap_live_slots] } || all * live / slots
        page_bytes = pages * GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE)
        { "ruby_objects" => objects, "ruby_free_slots" => [all - objects, 0].max,
          "ruby_page_overhead" => [page_bytes - all, 0].max }
      end

      # @return [Integer, nil] nil if this Ruby does not count it by size
      def slot_bytes
        return unless GC.respond_to?(:stat_heap)

        counts = GC.stat_heap.each_value.map { |heap| [heap[:slot_size], yield(heap)] }
        counts.sum { |size, count| size * count } if counts.flatten.all?
      end

      # What is free may have been returned, which glibc does not count: it has at most what the others leave.
      def malloc_levels(stats, rest)
        used = stats[:used_bytes] + stats[:large_bytes]
        metadata = stats[:descriptor_bytes].to_i
        free = stats[:free_bytes] - stats[:free_returned_bytes].to_i
        { "malloc_used" => used, "malloc_metadata" => metadata,
          "malloc_free" => free.clamp(0, [rest - used - metadata, 0].max) }
      end

      def trims
        stats = Culet.native? ? Culet.trim_stats : {}
        return [] unless stats[:active] || stats[:trims].to_i.positive?

        [["culet_trims_total", {}, stats[:trims]], ["culet_trims_skipped_total", {}, stats[:skipped]],
         ["culet_trim_returned_bytes_total", {}, stats[:returned_bytes]],
         ["culet_trim_seconds_total", {}, stats[:seconds]]]
      end

      def sites
        return [] unless Metrics.sites.positive? && Profile.respond_to?(:report) && Profile.running?

        largest = rested(:sites, SITES_REST) { Profile.report(view: :live)["sites"].first(Metrics.sites) }
        largest.each_with_index.flat_map do |site, index|
          rank = { "rank" => (index + 1).to_s }
          [["culet_profile_site_bytes", rank, site["bytes"]],
           ["culet_profile_site_info", rank.merge("site" => site_name(site), "class" => site["class"].to_s), 1]]
        end
      end

      def site_name(site)
        frame = site["frames"].find { |one| one["line"] } || site["frames"].first || {}
        text = [[frame["file"] || frame["library"], frame["line"]].compact.join(":"), frame["method"]].compact.join(" ")
        text.scrub("?")[0, SITE_LENGTH]
      end
    end
  end
end
