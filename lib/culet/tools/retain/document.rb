# frozen_string_literal: true

require_relative "../../model/retention/gems"

module Culet
  module Retain
    # The reports for JSON.
    class Document
      # Rows of lists that the tables cut.
      TOP = 100
      private_constant :TOP

      # @param top [Integer, nil] holders, sets and classes
      # @param growth [Retention::Growth, nil]
      def initialize(analysis, top: nil, growth: nil)
        @analysis = analysis
        @top = top || TOP
        @growth = growth
      end

      # @return [Hash{String => Object}]
      def to_h
        { "source" => @analysis.dump? ? "dump" : "process", "name" => @analysis.name, "pid" => @analysis.pid,
          "ruby" => @analysis.ruby, **sums, "holders" => @analysis.holders.first(@top).map { |one| holder(one) },
          "other_holders" => rest(@analysis.holders, @analysis.other_holders),
          "sets" => @analysis.sets.first(@top).map { |one| set(one) },
          "other_sets" => rest(@analysis.sets, @analysis.other_sets),
          "classes" => @analysis.classes.first(@top).map { |one| instances(one) },
          "gems" => Retention::Gems.new(@analysis).rows.first(@top).map { |row| row.to_h.transform_keys(&:to_s) },
          **selected, **duplicates, **(@growth ? { "growth" => growth } : {}) }
      end

      private

      def sums
        %w[objects slot_bytes malloc_bytes total_bytes unreachable_objects unreachable_bytes cpu_seconds fork_seconds
           peak_bytes].to_h { |key| [key, @analysis.public_send(key)] }
      end

      def rest(all, others)
        left = all.drop(@top)
        { "count" => left.size + others.count, "objects" => left.sum(&:objects) + others.objects,
          "bytes" => left.sum(&:bytes) + others.bytes }
      end

      def holder(one)
        { "name" => one.name, "kind" => one.kind, "path" => one.path.parts, "bytes" => one.bytes,
          "objects" => one.objects, "file" => one.file, "line" => one.line, "gem" => Retention::Gems.of(one),
          "address" => one.address, "class" => one.class_name, "may_be_stale" => one.stale?,
          "classes" => one.classes.map { |row| instances(row) } }
      end

      def set(one)
        { "names" => one.names, "holders" => one.size, "bytes" => one.bytes, "objects" => one.objects,
          "paths" => one.paths.map(&:parts), "classes" => one.classes.map { |row| instances(row) } }
      end

      def instances(one) = { "name" => one.name, "objects" => one.objects, "bytes" => one.bytes }

      def keeper(one)
        one.is_a?(Retention::HolderSet) ? { "names" => one.names } : { "name" => one.name, "kind" => one.kind }
      end

      def selected
        one = @analysis.selected or return {}
        shared = { "class" => one.name, "bytes" => one.bytes, "paths" => one.paths.map(&:parts) }
        if one.is_a?(Retention::Analysis::OfObject)
          return { "selected" => { "address" => one.address, **shared, "retained_bytes" => one.retained_bytes,
                                   "holders" => one.keepers.map { |keeper| keeper(keeper) } } }
        end

        holders = one.keepers.map do |kept|
          { **keeper(kept.keeper), "objects" => kept.objects, "bytes" => kept.bytes }
        end
        { "selected" => { **shared, "objects" => one.objects, "holders" => holders } }
      end

      def duplicates
        all = @analysis.duplicates or return {}
        rows = all.first(@top).map do |one|
          { "length_bytes" => one.length, "copies" => one.copies, "bytes" => one.bytes, "content" => one.content,
            "holders" => one.keepers.map { |keeper| keeper(keeper) } }
        end
        { "duplicates" => rows }
      end

      def growth
        { "verdict" => @growth.verdict, "seconds" => @growth.seconds.to_f, "looks" => looks,
          "growth_bytes" => @growth.total_growth_bytes, "least_bytes" => @growth.least_bytes,
          "holders" => @growth.rows.first(@top).map { |row| growing(row) },
          "classes" => @growth.classes.first(@top).map { |row| grown(row) } }
      end

      def looks
        first = @growth.looks.first.at
        @growth.looks.map do |look|
          { "at_seconds" => (look.at - first).to_f, "total_bytes" => look.analysis.total_bytes,
            "objects" => look.analysis.objects }
        end
      end

      def growing(row)
        { **keeper(row.keeper), "count" => row.count, "bytes" => row.bytes.last, "objects" => row.objects.last,
          "growth_bytes" => row.growth_bytes, "growth_objects" => row.growth_objects,
          "bytes_per_minute" => @growth.per_minute(row.growth_bytes).round, "each_bytes" => row.bytes,
          "paths" => row.keeper.paths.map(&:parts), "classes" => row.classes.map { |one| instances(one) },
          "allocated" => @growth.origin(row)&.to_h }
      end

      def grown(row)
        { "name" => row.name, "objects" => row.objects.last, "bytes" => row.bytes.last,
          "growth_objects" => row.growth_objects, "growth_bytes" => row.growth_bytes,
          "objects_per_minute" => @growth.per_minute(row.growth_objects) }
      end
    end
  end
end
