# frozen_string_literal: true

require_relative "../../text/lines"

module Culet
  module Top
    # One line of the screen: pieces of text with a style, cut at the width of the terminal.
    class Line
      # Select Graphic Rendition of ECMA-48; the colours are those of Okabe and Ito.
      STYLES = { bold: "1", dim: "2", reverse: "7", selected: "1;7", good: "38;5;36", fair: "38;5;178",
                 bad: "38;5;166" }.freeze
      # Besides what Lines.printable replaces: invisible characters, line separators, and those of fonts of one's own,
      # whose width no terminal agrees on.
      UNCERTAIN = /[\p{Cf}\p{Zl}\p{Zp}\p{Co}]/
      # A letter has no more marks in any language; more would cover the lines above.
      MOST_CHARACTERS = 4
      private_constant :STYLES, :UNCERTAIN, :MOST_CHARACTERS

      # @param text [Object] of another program
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      # @return [String] safe to print, each character of a known width
      def self.clean(text, unicode: true)
        text = Text::Lines.printable(text).gsub(UNCERTAIN, "?")
        return text if text.ascii_only?
        return text.gsub(/[^\x00-\x7f]/, "?") unless unicode

        text.each_grapheme_cluster.map { |cluster| cluster[0, MOST_CHARACTERS] }.join
      end

      # @param text [String] without control characters
      # @param columns [Integer] of the terminal
      # @return [String] of at most that many columns
      def self.cut(text, columns)
        return text if Text::Lines.width(text) <= columns
        return text[0, columns] if text.ascii_only?

        text.each_grapheme_cluster.take_while { |cluster| (columns -= Text::Lines.width(cluster)) >= 0 }.join
      end

      def initialize
        @pieces = []
      end

      # @param text [String] safe to print
      # @param style [Symbol, nil] one of STYLES
      # @return [self]
      def add(text, style = nil)
        @pieces << [text, style] unless text.empty?
        self
      end

      # @return [Integer] columns that it takes
      def width = @pieces.sum { |text, _| Text::Lines.width(text) }

      # @param columns [Integer] of the terminal
      # @param color [Boolean] whether to use styles
      # @return [String]
      def render(columns, color:)
        rest = columns
        @pieces.filter_map do |text, style|
          text = Line.cut(text, rest)
          rest -= Text::Lines.width(text)
          next if text.empty?

          color && style ? "\e[#{STYLES.fetch(style)}m#{text}\e[0m" : text
        end.join
      end

      # @return [String] without styles
      def to_s = @pieces.map(&:first).join
    end
  end
end
