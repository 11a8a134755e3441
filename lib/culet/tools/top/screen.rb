# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "header"
require_relative "help"
require_relative "line"
require_relative "rows"
require_relative "table"

module Culet
  module Top
    # A moment as the lines of the terminal.
    class Screen
      # A terminal with fewer rows has no notes, or no events, or only the first line of the header.
      NOTES_ROWS = 10
      HEADER_ROWS = 9
      # Rows that events take from the table in a terminal with so many rows, at least.
      EVENTS = { 12 => 1, 20 => 3, 40 => 5 }.freeze
      # A note in a lower terminal has one line.
      LONG_NOTES_ROWS = 20
      MOST_NOTE_LINES = 3
      # Rows of events at most, where the table leaves room.
      MOST_EVENTS = 10
      private_constant :NOTES_ROWS, :HEADER_ROWS, :EVENTS, :LONG_NOTES_ROWS, :MOST_NOTE_LINES, :MOST_EVENTS

      # @param color [Boolean] whether to use styles
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      def initialize(state, color:, unicode: Encoding.default_external == Encoding::UTF_8)
        @state = state
        @color = color
        @unicode = unicode
      end

      # @return [Array<Symbol>] the columns shown last, by which the rows can be sorted
      attr_reader :sortable

      # @param moment [Hash]
      # @param rows [Integer] of the terminal
      # @param columns [Integer] of the terminal
      # @return [Array<String>] so many lines as the terminal has rows, none wider than it
      def frame(moment, rows:, columns:, history:, notes:)
        lines = @state.help? ? help(rows, columns) : view(moment, rows, columns, history, notes)
        (lines.first(rows) + [Line.new] * [rows - lines.size, 0].max).map { |line| line.render(columns, color: @color) }
      end

      private

      def help(rows, columns)
        lines = Help.lines(columns)
        room = [rows - 1, 1].max
        shown = lines[@state.scroll_within(lines.size, room), room]
        [*shown, *[Line.new] * (room - shown.size), keys(Line.new, columns, Help::LEAVING)]
      end

      def view(moment, rows, columns, history, notes)
        table = Table.new(moment, @state, width: columns, unicode: @unicode)
        @sortable = [*table.columns.map(&:name), :title]
        list = Rows.new(moment["processes"], @state).list
        head = head(moment, table, rows, columns)
        foot = foot(rows, columns, history, notes, rows - head.size - list.size)
        body = body(list, table, [rows - head.size - foot.size, 0].max)
        head + body + foot
      end

      def head(moment, table, rows, columns)
        header = Header.new(moment, unit: table.unit, columns: columns).lines(@state)
        header = header.first(1) if rows < HEADER_ROWS
        header << Line.new if rows >= LONG_NOTES_ROWS
        rows > 1 ? [*header, table.heading] : []
      end

      # Exactly so many lines as there is room for.
      def body(list, table, room)
        offset = @state.scroll_within(list.size, room)
        lines = list[offset, room].to_a.map { |row| table.line(row) }
        lines << Line.new.add("no process matches the filter", :dim) if list.empty? && room.positive?
        lines + [Line.new] * [room - lines.size, 0].max
      end

      # @param free [Integer] rows that header and table leave
      def foot(rows, columns, history, notes, free)
        sentences = rows < NOTES_ROWS ? [] : notes.flat_map { |note| note_lines(note, rows, columns) }
        least = EVENTS.select { |from, _| rows >= from }.values.last || 0
        count = [history.size, [least, free - sentences.size - 3].max, MOST_EVENTS].min
        events = history.lines(count, unicode: @unicode)
        parts = [events, sentences].reject(&:empty?)
        parts = parts.map { |part| [Line.new, *part] } if rows >= LONG_NOTES_ROWS
        [*parts.flatten(1), *([Line.new] if rows >= LONG_NOTES_ROWS), bottom(columns)]
      end

      def note_lines(note, rows, columns)
        lines = Text::Lines.wrap(Line.clean(note, unicode: @unicode), columns: columns - 1).lines(chomp: true)
        lines = lines.first(rows < LONG_NOTES_ROWS ? 1 : MOST_NOTE_LINES)
        lines.map { |line| Line.new.add(line, :dim) }
      end

      # The filter while it is typed, else the filter and the keys.
      def bottom(columns)
        line = Line.new
        return editor(line, columns) if @state.editing?

        if @state.filter != ""
          line.add("Filter: #{Line.clean(@state.filter, unicode: @unicode)}", :fair).add("  Esc", :bold).add(" Clear")
        end
        keys(line, columns, Help::KEYS)
      end

      # The cursor is a space in reverse.
      def editor(line, columns)
        line.add("Filter: ", :bold).add(last_part(@state.filter, columns - 9)).add(" ", :reverse)
      end

      def keys(line, columns, list)
        list.each do |key, text|
          gap = line.width.zero? ? "" : "  "
          break if line.width + gap.size + key.size + 1 + text.size > columns

          line.add(gap).add(key, :bold).add(" #{text}")
        end
        line
      end

      # The end of the text, so that the last typed characters are visible.
      def last_part(text, room)
        text = Line.clean(text, unicode: @unicode)
        text = text[1..] while Text::Lines.width(text) > [room, 0].max
        text
      end
    end
  end
end
