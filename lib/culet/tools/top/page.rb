# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "header"
require_relative "line"
require_relative "notes"
require_relative "rows"
require_relative "state"
require_relative "table"

module Culet
  module Top
    # One moment as plain text, for a file or a pipe.
    class Page
      # @param moment [Hash]
      # @param columns [Integer, nil] of a line; nil: no limit
      # @param color [Boolean] whether to use styles
      # @param unicode [Boolean] whether characters beyond ASCII can be shown
      def initialize(moment, columns:, color:, unicode: Encoding.default_external == Encoding::UTF_8)
        @moment = moment
        @columns = columns || Float::INFINITY
        @color = color
        @unicode = unicode
      end

      # @return [String]
      def to_s
        state = State.new
        table = Table.new(@moment, state, width: @columns, unicode: @unicode)
        header = Header.new(@moment, unit: table.unit, columns: @columns).lines
        rows = Rows.new(@moment["processes"], state).list.map { |row| table.line(row) }
        lines = [*header, Line.new, table.heading(marked: false), *rows]
        lines = lines.map { |line| line.render(@columns, color: @color).rstrip }
        "#{[*lines, *notes].join("\n")}\n"
      end

      private

      def notes
        sentences = Notes.new.call(@moment).map { |note| Text::Lines.wrap(Line.clean(note, unicode: @unicode)) }
        sentences.empty? ? [] : ["", *sentences]
      end
    end
  end
end
