# frozen_string_literal: true

require_relative "../../errors"
require_relative "font"
require_relative "../packing"

module Culet
  module Map
    # A canvas with rectangles, rows of colours and text. A colour is 0xrrggbbaa, as in chunky_png.
    class Raster
      BACKGROUND = 0xfdfdfcff
      # Pixels from the top of a text to its baseline.
      BASELINE = 14
      private_constant :BASELINE

      attr_reader :width, :height

      # @param width [Integer] pixels
      # @param height [Integer] pixels
      # @raise [Culet::Error] without the chunky_png gem
      def initialize(width, height)
        begin
          require "chunky_png"
        rescue LoadError
          raise MissingGem.new("a PNG", "chunky_png", instead: "--html")
        end
        @width = width
        @height = height
        @pixels = Array.new(width * height, BACKGROUND)
        @font = Font.new
      end

      # @param red [Integer] 0 to 255, like the others
      # @return [Integer] an opaque colour
      def self.colour(red, green, blue) = (red << 24) | (green << 16) | (blue << 8) | 0xff

      # Draws a rectangle, clipped to the canvas.
      def fill(left, top, width, height, colour)
        from = [left, 0].max
        count = [left + width, @width].min - from
        return unless count.positive?

        row = [colour] * count
        ([top, 0].max...[top + height, @height].min).each { |at| @pixels[(at * @width) + from, count] = row }
      end

      # Draws a row of pixels, repeated for `height` rows.
      #
      # @param colours [Array<Integer>]
      def row(left, top, colours, height)
        height.times { |line| @pixels[((top + line) * @width) + left, colours.size] = colours }
      end

      # Draws a line of text over what is there.
      #
      # @param left [Integer] in pixels, as `top`
      # @param colour [Integer] 0xrrggbbaa
      def text(left, top, text, colour: 0x1d1f23ff)
        base = top + BASELINE
        @font.each_pixel(text) { |column, row, cover| blend(left + column, base + row, colour, cover) }
      end

      # @return [Integer] width of the text in pixels
      def text_width(text) = @font.width(text)

      # A higher compression level takes ten times as long without a gain: cells are uniform or look like noise.
      def to_png
        canvas = ChunkyPNG::Canvas.new(@width, @height, @pixels)
        Packing.interruptible { canvas.to_blob(color_mode: ChunkyPNG::COLOR_TRUECOLOR, compression: Zlib::BEST_SPEED) }
      end

      private

      # Blends a colour over the pixel's by its coverage.
      def blend(column, row, colour, cover)
        return unless column.between?(0, @width - 1) && row.between?(0, @height - 1)

        at = (row * @width) + column
        below = @pixels[at]
        @pixels[at] = [24, 16, 8].sum(0xff) do |shift|
          from = (below >> shift) & 0xff
          (from + ((((colour >> shift) & 0xff) - from) * cover / Font::FULL)) << shift
        end
      end
    end
  end
end
