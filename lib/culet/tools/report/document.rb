# frozen_string_literal: true

require_relative "holdings"

module Culet
  module Report
    # A report as one JSON object.
    class Document
      def initialize(snapshot)
        @snapshot = snapshot
        @memory = SnapshotLevels.new(snapshot)
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        {
          **process,
          "allocator" => allocator.name, "allocator_library" => allocator.library,
          "allocator_level" => allocator.level, "allocator_why" => allocator.why,
          "levels" => @memory.levels, "unexplained_bytes" => @memory.unexplained_bytes,
          "other_mappings" => @memory.others.map do |name, bytes, count|
            { "name" => name, "rss_bytes" => bytes, "mappings" => count }
          end,
          "trim_bytes" => @snapshot.malloc&.trim_bytes, "malloc" => @snapshot.malloc&.to_h,
          "arenas" => @snapshot.arenas.map(&:to_h), "ruby" => @snapshot.ruby&.to_h,
          "verdicts" => SnapshotVerdicts.new(@memory).list.map { |one| one.to_h.transform_keys(&:to_s) },
          "problems" => @snapshot.problems, **inside
        }
      end

      private

      # The process's own counts, if they were requested.
      def inside
        { "malloc_holdings" => Holdings.of(@memory)&.to_h, "objects" => @snapshot.objects&.to_h,
          "gc" => @snapshot.gc, "vm" => @snapshot.vm,
          "allocator_statistics" => @snapshot.allocator_statistics }.compact
      end

      def allocator = @snapshot.allocator

      def process
        @snapshot.process.to_h.slice("pid", "name", "title", "program", "time", "mode", "threads",
                                     "rss_bytes", "pss_bytes", "shared_bytes",
                                     "private_dirty_bytes", "swap_bytes")
      end
    end
  end
end
