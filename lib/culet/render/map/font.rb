# frozen_string_literal: true

module Culet
  module Map
    # Bitmap letters for the PNG (assets/font.txt, rendered once from DejaVu Sans). A font library would bring native
    # code for a few lines of text. Characters beyond ASCII are drawn as "?".
    class Font
      SOURCE = File.expand_path("assets/font.txt", __dir__)
      # Other lines of the file are comments.
      GLYPH = %r{\A(.) (\d+\.\d+) (-?\d+) (-?\d+) (-|[0-9a-f/]+)\z}
      # The coverage of a pixel goes from 0 to this.
      FULL = 15
      private_constant :SOURCE, :GLYPH

      # advance: pixels to the next letter; pixels: [column, row, cover] relative to the pen and the baseline, right and
      # down; cover: 1 to FULL.
      Glyph = Struct.new(:advance, :pixels)

      def initialize
        lines = File.readlines(SOURCE, chomp: true).filter_map { |line| GLYPH.match(line)&.captures }
        @glyphs = lines.to_h do |character, advance, left, top, rows|
          [character, Glyph.new(Float(advance), pixels(rows, Integer(left), Integer(top)))]
        end
      end

      # Yields every pixel of a text.
      #
      # @yieldparam column [Integer] from the start
      # @yieldparam row [Integer] from the baseline, down
      # @yieldparam cover [Integer] 1 to FULL
      def each_pixel(text)
        left = 0.0
        text.each_char do |character|
          glyph = self[character]
          pen = left.round
          glyph.pixels.each { |column, row, cover| yield pen + column, row, cover }
          left += glyph.advance
        end
      end

      # @return [Integer] its width in pixels
      def width(text) = text.each_char.sum { |character| self[character].advance }.ceil

      private

      def [](character) = @glyphs.fetch(character) { @glyphs.fetch("?") }

      def pixels(rows, left, top)
        return [] if rows == "-"

        rows.split("/").each_with_index.flat_map do |row, number|
          row.each_char.with_index.filter_map do |digit, column|
            [left + column, top + number, digit.hex] unless digit == "0"
          end
        end
      end
    end
  end
end
