# frozen_string_literal: true

require_relative "../errors"
require_relative "lines"

module Culet
  module Text
    # A table for a terminal: columns separated by spaces, one rule below the headings. A table that is wider than the
    # terminal has its headings broken into lines and its long texts cut; columns that still do not fit go into a second
    # table below.
    module Table
      # Spaces between two columns.
      GAP = 2
      # Neither a text nor a bar is cut shorter than this.
      LEAST_TEXT = 12
      LEAST_BAR = 5
      BAR = 30
      ALIGN = { true => :left, false => :right, nil => :right, bar: :bar }.freeze
      private_constant :ALIGN, :GAP, :LEAST_TEXT, :LEAST_BAR, :BAR

      # One column; `whole` has the cells before they were cut.
      Column = Struct.new(:heading, :cells, :align, :whole, keyword_init: true) do
        def text? = align == :left

        def bar? = align == :bar

        # @return [Integer] columns of the terminal
        def width = bar? ? LEAST_BAR : [*heading.lines, *cells].map { |text| Lines.width(text) }.max.to_i

        # @return [Column] with the heading in lines no longer than its cells, where its words allow that
        def broken
          room = bar? ? 0 : cells.map { |text| Lines.width(text) }.max.to_i
          lines = heading.split.each_with_object([]) do |word, all|
            all.any? && Lines.width(all.last) + 1 + Lines.width(word) <= room ? all.last << " " << word : all << +word
          end
          with(heading: lines.join("\n"))
        end

        # @param columns [Integer] of the terminal
        # @param unicode [Boolean] whether an ellipsis can be shown
        # @return [Column] with texts of at most that width
        def cut(columns, unicode)
          original = whole || cells
          with(cells: original.map { |cell| Table.cut(cell, columns, unicode) }, whole: original).broken
        end

        # @return [Column] with bars of at most so many columns
        def drawn(columns, unicode)
          block = unicode ? "█" : "#"
          with(cells: cells.map { |share| block * (columns * share).round.clamp(0, columns) }, align: :left)
        end

        private

        def with(**changed) = self.class.new(**to_h, **changed)
      end

      module_function

      # @param columns [Array<Array>] each [heading, cells, alignment]: true is left, false right; :bar draws numbers
      #   from 0 to 1 as bars (nil: no bar)
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      # @param width [Integer, nil] columns of the terminal; nil: no limit
      # @return [String] the table's lines
      # @raise [Error] without the terminal-table gem
      def render(columns, unicode:, width: Lines.columns)
        require "terminal-table"
        list = columns.map do |heading, cells, align|
          cells = cells.map(&:to_f) if align == :bar
          Column.new(heading: heading, cells: cells, align: ALIGN.fetch(align))
        end
        tables = width ? narrowed(list, width, unicode) : [draw_bars(list, nil, unicode)]
        tables.map { |table| lines(table, unicode) }.join("\n\n")
      rescue LoadError
        raise MissingGem.new("a table", "terminal-table", instead: "--json")
      end

      # A path keeps its end, any other text its beginning.
      #
      # @param unicode [Boolean]
      # @return [String] of at most that many columns
      def cut(text, columns, unicode)
        return text if Lines.width(text) <= columns

        mark = unicode ? "…" : ".."
        plain = Lines.uncolored(text)
        path = plain.match?(%r{\A\S*/\S*\z})
        kept = path ? plain.chars.reverse : plain.chars
        size = 0
        kept = kept.take_while { |char| (size += Lines.width(char)) <= columns - mark.size }
        path ? mark + kept.reverse.join : kept.join + mark
      end

      # @return [Array<Array<Column>>] tables that fit
      def narrowed(list, columns, unicode)
        list = list.map(&:broken) unless fits?(list, columns)
        list = list.reject(&:bar?) unless fits?(list, columns)
        cut = fits?(list, columns) ? list : cut_texts(list, columns, unicode)
        fits?(cut, columns) ? [draw_bars(cut, columns, unicode)] : apart(list, columns, unicode)
      end

      # The rule reaches one column beyond the cells.
      def total(list) = list.sum(&:width) + (GAP * (list.size - 1)) + 1

      def fits?(list, columns) = total(list) <= columns

      # The longest text first, no more than is needed.
      def cut_texts(list, columns, unicode)
        list = list.dup
        until (over = total(list) - columns) <= 0
          texts = list.each_index.select { |index| list[index].text? }
          longest = texts.max_by { |index| list[index].width }
          break unless longest && list[longest].width > LEAST_TEXT

          # No further than the next longest, so that two long texts are cut alike.
          next_longest = (texts - [longest]).map { |index| list[index].width }.max.to_i
          goal = [list[longest].width - over, [next_longest - 1, LEAST_TEXT].max, LEAST_TEXT].max
          cut = list[longest].cut(goal, unicode)
          break if cut.width >= list[longest].width

          list[longest] = cut
        end
        list
      end

      # Every table repeats the first column, which names the rows.
      def apart(list, columns, unicode)
        name, *others = list
        name = name.cut(columns / 2, unicode) if name.text?
        room = columns - total([name]) - GAP
        others = others.map { |column| column.text? ? column.cut(room, unicode) : column }
        others.each_with_object([[name]]) do |column, tables|
          tables << [name] if tables.last.size > 1 && !fits?([*tables.last, column], columns)
          tables.last << column
        end
      end

      def draw_bars(list, columns, unicode)
        room = if columns
                 columns - total(list) + list.sum { |column| column.bar? ? column.width : 0 }
               else
                 BAR
               end
        list.map { |column| column.bar? ? column.drawn([room, BAR].min, unicode) : column }
      end

      def lines(list, unicode)
        table = Terminal::Table.new(headings: list.map(&:heading), rows: list.map(&:cells).transpose,
                                    style: style(unicode))
        list.each_with_index { |column, index| table.align_column(index, column.align) }
        table.render.lines.map(&:rstrip).join("\n")
      end

      def style(unicode)
        border = unicode ? Terminal::Table::UnicodeBorder.new : Terminal::Table::AsciiBorder.new
        parts = unicode ? { y: " ", ax: "─", ai: "─", ad: "─", au: "─" } : { y: " ", i: "-" }
        parts.each { |key, text| border[key] = text }
        { border: border, border_left: false, border_right: false, border_top: false, border_bottom: false,
          padding_left: 0, padding_right: 1 }
      end

      private_class_method :narrowed, :total, :fits?, :cut_texts, :apart, :draw_bars, :lines, :style
    end
  end
end
