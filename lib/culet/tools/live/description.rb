# frozen_string_literal: true

require_relative "../../model/levels"

module Culet
  module Live
    # One process of a moment, as the sampler gives it.
    class Description
      # Memory figures that add up.
      SUMS = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].freeze
      COUNTS = %w[minor_gcs major_gcs allocated_objects trims trim_returned_bytes].freeze
      UNKNOWN = SUMS.to_h { |name| [name, nil] }.freeze
      private_constant :COUNTS, :UNKNOWN

      # @param member [Member]
      # @param boot_time [Float] of the machine, in seconds since 1970
      def initialize(member, boot_time)
        @member = member
        @boot_time = boot_time
      end

      # @param rollup [Processes::Rollups::Entry, nil] as of Member#memory
      # @param copied [Float] as of Member#memory
      # @return [Hash{String => Object}] the same object as the last time if nothing has changed
      def call(rollup, copied)
        rate = @member.collections_per_minute
        return @last if rate == @rate && @last && same?(rollup)

        @rate = rate
        @rollup = rollup
        @stat = @member.stat
        @title = @member.title
        @figures = @member.figures.last
        @last = describe(@member.memory(rollup, copied)).freeze
      end

      private

      def same?(rollup)
        rollup.equal?(@rollup) && @member.stat.equal?(@stat) && @member.figures.last.equal?(@figures) &&
          @member.title == @title
      end

      def describe(memory)
        found = @member.identity(@boot_time)
        found.update(memory || { **UNKNOWN, "rss_bytes" => @stat.resident_bytes })
        found["cpu_seconds"] = @stat.cpu_seconds
        found["threads"] = @stat.threads
        found["figures"] = @figures && own_figures
        found
      end

      def own_figures
        live = @figures["live_slots"]
        slots = @figures["slots"]
        found = { "levels" => Levels.counted(@stat.resident_bytes, @stat.file_bytes, @figures),
                  "malloc_used_bytes" => @figures["malloc_used_bytes"],
                  "malloc_free_bytes" => @figures["malloc_free_bytes"], "live_slots" => live,
                  "free_slots" => live && slots && [slots - live, 0].max }
        COUNTS.each { |name| found[name] = @figures[name] }
        found["gc_per_minute"] = @rate
        found["profile"] = @figures["profile"] == 1
        found
      end
    end
  end
end
