# frozen_string_literal: true

require_relative "document"

module Culet
  module Boot
    # The difference between two runs: total, by gem and by file.
    class Difference
      # The compared figures, all without required files.
      FIGURES = %w[self_seconds self_cpu_seconds objects retained_bytes mallocs malloc_bytes
                   syscalls failed_syscalls iseq_bytes].freeze

      # @param before [Hash] of Document
      # @param after [Hash] of Document
      def initialize(before, after)
        @before = before
        @after = after
      end

      # @return [Hash{String => Object}] total, gems and files; each figure has before, after and grown
      def to_h
        { "kind" => "culet require --diff", "before" => heading(@before), "after" => heading(@after),
          "total" => grown(@before["features"], @after["features"]), "gems" => groups("gem") { |one| one["gem"] },
          "files" => groups("path") { |one| one["path"] || one["name"] } }
      end

      private

      def heading(document)
        figures = document.slice("command", "ruby", "total_seconds", "total_cpu_seconds")
        figures.merge("files" => document["features"].count { |one| one["error"].nil? })
      end

      # Rows without a difference are omitted.
      def groups(key, &block)
        sides = [@before, @after].map { |document| document["features"].group_by(&block) }
        all = sides.flat_map(&:keys).uniq.map do |name|
          lists = sides.map { |side| side[name] || [] }
          { key => name, "only" => only(lists), **grown(*lists) }
        end
        all.reject { |one| FIGURES.all? { |figure| (one.dig(figure, "grown") || 0).zero? } && one["only"].nil? }
      end

      def only(lists)
        return "before" if lists.last.empty?

        "after" if lists.first.empty?
      end

      def grown(before, after)
        FIGURES.to_h do |figure|
          sums = [before, after].map { |list| sum(list, figure) }
          first, last = sums
          [figure, ({ "before" => first, "after" => last, "grown" => (last - first).round(6) } if sums.all?)]
        end
      end

      # A missing file counts as zero; a figure that was not counted has no sum.
      def sum(list, figure)
        values = list.map { |one| one[figure] }
        values.sum unless values.include?(nil)
      end
    end
  end
end
