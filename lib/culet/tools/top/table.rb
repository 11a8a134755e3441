# frozen_string_literal: true

require_relative "../../text/size"
require_relative "columns"
require_relative "line"

module Culet
  module Top
    # The table of a moment: headings and a line for each process.
    class Table
      # The drawing of a tree before a title: the levels above, and its own.
      UNICODE = { above: ["│ ", "  "], own: ["├ ", "└ "], up: "▲", down: "▼" }.freeze
      ASCII = { above: ["| ", "  "], own: ["|-", "`-"], up: "^", down: "v" }.freeze
      private_constant :UNICODE, :ASCII

      # @return [Array<Column>] those that fit
      attr_reader :columns

      # @param moment [Hash]
      # @param width [Numeric] columns of the terminal; Float::INFINITY: no limit
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      def initialize(moment, state, width:, unicode:)
        @moment = moment
        @state = state
        @width = width
        @unicode = unicode
        @signs = unicode ? UNICODE : ASCII
        @columns = Columns.fitting(width)
        largest = moment["processes"].flat_map { |one| one.values_at("rss_bytes", "swap_bytes") }.compact.max || 0
        @unit, @unit_bytes = Text::Size.unit(largest)
      end

      # @return [String] of the sizes: "MB"
      attr_reader :unit

      # @param marked [Boolean] whether to mark the column that decides about the order
      # @return [Line]
      def heading(marked: true)
        line = Line.new
        @columns.each_with_index do |column, index|
          sorted = marked && column.name == @state.sort
          room = column_width(column) + (index.zero? ? 0 : 1)
          line.add("#{mark if sorted}#{column.heading}".rjust(room), sorted ? :selected : :reverse)
        end
        sorted = marked && @state.sort == :title
        line.add(" TITLE#{mark if sorted}", sorted ? :selected : :reverse)
        line.add(" " * [@width - line.width, 0].max, :reverse) if @width.finite?
        line
      end

      # @param row [Rows::Row]
      # @return [Line]
      def line(row)
        cells = @columns.each_with_index.map do |column, index|
          cell = column.cell(row.process, unit: @unit_bytes, at: @moment["at"])
          cell.rjust(column_width(column) + (index.zero? ? 0 : 1))
        end
        numbers = cells.join
        title = "#{branches(row.branches)}#{Line.clean(row.process["title"], unicode: @unicode)}"
        title = title.each_grapheme_cluster.drop(@state.shift).join if @state.shift.positive?
        title = Line.cut(title, [@width - numbers.size - 1, 0].max)
        Line.new.add("#{numbers} #{title}")
      end

      private

      # Numbers of processes have up to seven digits.
      def column_width(column)
        return column.width unless column.name == :pid

        [@moment["processes"].map { |process| process["pid"].to_s.size }.max.to_i, column.width].max
      end

      def mark = @signs[@state.descending? ? :down : :up]

      def branches(levels)
        return "" if levels.empty?

        *above, own = levels
        above.map { |last| @signs[:above][last ? 1 : 0] }.join + @signs[:own][own ? 1 : 0]
      end
    end
  end
end
