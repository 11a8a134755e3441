# frozen_string_literal: true

require_relative "figures"
require_relative "lines"
require_relative "table"

module Culet
  # Helpers of all reports: numbers, sizes, lines, tables and colours.
  #
  # @api private
  module Text
    # The base of every report for a terminal. A subclass returns tables and paragraphs in `sections`, made with the
    # methods below.
    class View
      include Figures

      # @param subject [Object] what is printed
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      def initialize(subject = nil, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @subject = subject
        @color = color
        @unicode = unicode
      end

      # @return [String] the sections, an empty line between each two
      # @raise [Culet::Error] without the terminal-table gem
      def to_s
        text = "#{sections.flatten.compact.join("\n\n")}\n"
        @unicode ? text : text.tr("–…µ", "-.u")
      end

      private

      # @return [Array<String, nil, Array>] nil where there is nothing to print
      def sections = raise(NotImplementedError)

      def grid(columns, **options) = Table.render(columns, unicode: @unicode, **options)

      def printable(text) = Lines.printable(text)

      def wrap(text, indent: 0) = Lines.wrap(text, indent: indent)

      def bold(text) = painted(text, "1")

      def best(text) = painted(text, "1;32")

      def painted(text, code) = @color ? "\e[#{code}m#{text}\e[0m" : text

      def verdict_lines(list)
        Lines.verdicts(list) { |topic| bold(topic) } if list.any?
      end

      def note_lines(...) = Lines.notes(...)
    end
  end
end
