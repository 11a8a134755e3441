# frozen_string_literal: true

module Culet
  module Map
    # Letters of dots for the PNG, which has no fonts of its own to draw with. The table is small, lies in a file beside
    # the page's parts, and spares a library with outlines, hinting and a font's licence for a few lines of text.
    # ASCII is enough: what the picture says is written so, and any other character of a name is shown as "?".
    class Font
      SOURCE = File.expand_path("assets/font.txt", __dir__)
      HEIGHT = 9
      SPACE_DOTS = 3
      # Other lines of the file explain it.
      GLYPH = %r{\A\S [.#/]+\z}
      private_constant :SOURCE, :SPACE_DOTS, :GLYPH

      # dots: [column, row] of each; width: in dots
      Glyph = Struct.new(:dots, :width)

      def initialize
        lines = File.readlines(SOURCE, chomp: true).grep(GLYPH)
        @glyphs = lines.to_h { |line| [line[0], glyph(line[2..].split("/"))] }
        @glyphs[" "] = Glyph.new([], SPACE_DOTS)
      end

      # Yields every dot of a text.
      #
      # @param text [String]
      # @yieldparam column [Integer] in dots from the left
      # @yieldparam row [Integer] in dots from the top, up to HEIGHT
      def each_dot(text)
        left = 0
        text.each_char do |character|
          glyph = self[character]
          glyph.dots.each { |column, row| yield left + column, row }
          left += glyph.width + 1
        end
      end

      # @param text [String]
      # @return [Integer] its width in dots
      def width(text) = text.each_char.sum { |character| self[character].width + 1 }

      private

      def [](character) = @glyphs.fetch(character) { @glyphs.fetch("?") }

      def glyph(rows)
        dots = rows.each_with_index.flat_map { |row, number| row.each_char.with_index.filter_map { |dot, column| [column, number] if dot == "#" } }
        Glyph.new(dots, rows.map(&:size).max)
      end
    end
  end
end
