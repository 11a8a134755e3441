# frozen_string_literal: true

require_relative "../../../lib/culet/text/view"
require_relative "difference"

module Culet
  module Boot
    # A difference, for a terminal: the largest growth first.
    class DifferenceTable < Text::View
      # Heading, figure, unit.
      COLUMNS = [["cpu ms", "self_cpu_seconds", 1e-3], ["objects", "objects", nil],
                 ["retained kB", "retained_bytes", 1e3], ["malloc kB", "malloc_bytes", 1e3],
                 ["lookups", "syscalls", nil], ["failed", "failed_syscalls", nil],
                 ["code kB", "iseq_bytes", 1e3]].freeze
      private_constant :COLUMNS

      # @param lines [Integer] rows of each list
      # @param options [Hash] as for Text::View
      def initialize(difference, lines: 15, **options)
        super(**options)
        @document = difference.to_h
        @lines = lines
      end

      private

      def sections = [heading, total, list("gem"), list("path", "file")]

      def heading
        words = %w[before after].map do |side|
          one = @document[side]
          time = Text::Numbers.significant(one["total_seconds"] * 1e3)
          "#{side}: #{printable(one["command"].join(" "))}, #{count(one["files"], "file")} in #{time} ms"
        end
        words.map { |line| bold(line) }.join("\n")
      end

      def total
        rows = COLUMNS.filter_map do |title, figure, unit|
          [title, @document["total"][figure], unit] if @document["total"][figure]
        end
        columns = %w[before after grown].map do |side|
          cells = rows.map do |_, values, unit|
            side == "grown" ? signed(values[side], unit) : number(values[side], unit)
          end
          [side, cells, false]
        end
        grid([["all files", rows.map(&:first), true], *columns])
      end

      def list(key, title = key)
        all = @document[key == "gem" ? "gems" : "files"].sort_by { |one| -weight(one) }
        return if all.empty?

        shown = all.first(@lines)
        columns = COLUMNS.select { |_, figure,| shown.any? { |one| one[figure] } }
        cells = columns.map do |heading, figure, unit|
          [heading, shown.map { |one| one[figure] ? signed(one[figure]["grown"], unit) : "-" }, false]
        end
        table = grid([[title, shown.map { |one| name(one, key) }, true], *cells])
        all.size > shown.size ? "#{table}\n#{count(all.size - shown.size, title)} more not shown (--top)" : table
      end

      # Memory is the same in every run, time is not.
      def weight(one) = %w[retained_bytes iseq_bytes malloc_bytes].sum { |figure| (one.dig(figure, "grown") || 0).abs }

      def name(one, key)
        side = { "before" => " (removed)", "after" => " (new)" }[one["only"]]
        "#{printable(one[key])}#{side}"
      end

      def number(value, unit) = unit ? Text::Numbers.significant(value / unit.to_f) : Text::Numbers.grouped(value)

      def signed(value, unit)
        return "0" if value.zero?

        "#{value.positive? ? "+" : "-"}#{number(value.abs, unit)}"
      end
    end
  end
end
