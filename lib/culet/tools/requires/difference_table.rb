# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/table"
require_relative "../../text/lines"
require_relative "difference"

module Culet
  module Requires
    # A difference for a terminal: what grew, most first.
    class DifferenceTable
      # Heading, figure, what one unit is.
      COLUMNS = [["cpu ms", "self_cpu_seconds", 1e-3], ["objects", "objects", nil], ["left kB", "retained_bytes", 1e3], ["malloc kB", "malloc_bytes", 1e3],
                 ["look-ups", "syscalls", nil], ["failed", "failed_syscalls", nil], ["code kB", "iseq_bytes", 1e3]].freeze
      private_constant :COLUMNS

      # @param difference [Difference]
      # @param lines [Integer] how many of each list
      # @param color [Boolean]
      # @param unicode [Boolean]
      def initialize(difference, lines: 15, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @document = difference.to_h
        @lines = lines
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = "#{[heading, total, list("gem"), list("path", "file")].compact.join("\n\n")}\n"

      private

      def heading
        words = %w[before after].map do |side|
          one = @document[side]
          "#{side}: #{Text::Lines.printable(one["command"].join(" "))}, #{Text::Numbers.count(one["files"], "file")} in #{Text::Numbers.significant(one["total_seconds"] * 1e3)} ms"
        end
        bold = @color ? ["\e[1m", "\e[0m"] : ["", ""]
        words.map { |line| "#{bold.first}#{line}#{bold.last}" }.join("\n")
      end

      def total
        rows = COLUMNS.filter_map { |title, figure, unit| [title, @document["total"][figure], unit] if @document["total"][figure] }
        grid([["all files", rows.map(&:first), true],
              *%w[before after grown].map { |side| [side, rows.map { |_, values, unit| side == "grown" ? signed(values[side], unit) : number(values[side], unit) }, false] }])
      end

      def list(key, title = key)
        all = @document["#{key == "gem" ? "gems" : "files"}"].sort_by { |one| -weight(one) }
        return if all.empty?

        shown = all.first(@lines)
        columns = COLUMNS.select { |_, figure,| shown.any? { |one| one[figure] } }
        table = grid([[title, shown.map { |one| name(one, key) }, true],
                      *columns.map { |heading, figure, unit| [heading, shown.map { |one| one[figure] ? signed(one[figure]["grown"], unit) : "-" }, false] }])
        all.size > shown.size ? "#{table}\n#{Text::Numbers.count(all.size - shown.size, title)} more not shown (--top)" : table
      end

      # Memory differs by the same in each run; time does not.
      def weight(one) = %w[retained_bytes iseq_bytes malloc_bytes].sum { |figure| (one.dig(figure, "grown") || 0).abs }

      def name(one, key)
        side = { "before" => " (gone)", "after" => " (new)" }[one["only"]]
        "#{Text::Lines.printable(one[key])}#{side}"
      end

      def number(value, unit) = unit ? Text::Numbers.significant(value / unit.to_f) : Text::Numbers.grouped(value)

      def signed(value, unit)
        return "0" if value.zero?

        "#{value.positive? ? "+" : "-"}#{number(value.abs, unit)}"
      end

      def grid(columns) = Text::Table.render(columns, unicode: @unicode)
    end
  end
end
