# frozen_string_literal: true

require_relative "../../errors"
require_relative "font"
require_relative "packing"

module Culet
  module Map
    # Pixels to draw on: rectangles, rows of colours, text. A colour is 0xrrggbbaa, as chunky_png has them.
    class Raster
      BACKGROUND = 0xfdfdfcff
      # How far below a text's top its letters stand, in pixels.
      BASELINES = { text: 14, title: 21 }.freeze
      private_constant :BASELINES

      attr_reader :width, :height

      # @param width [Integer] pixels
      # @param height [Integer] pixels
      # @raise [Culet::Error] when the gem that writes PNG is not installed
      def initialize(width, height)
        begin
          require "chunky_png"
        rescue LoadError
          raise Error, "a PNG needs the chunky_png gem; install it with `gem install chunky_png`, or use --html"
        end
        @width = width
        @height = height
        @pixels = Array.new(width * height, BACKGROUND)
      end

      # @param red [Integer] 0 to 255, like the others
      # @return [Integer] an opaque colour
      def self.colour(red, green, blue) = (red << 24) | (green << 16) | (blue << 8) | 0xff

      # Draws a rectangle, as far as it lies on the raster.
      def fill(left, top, width, height, colour)
        from = [left, 0].max
        count = [left + width, @width].min - from
        return unless count.positive?

        row = [colour] * count
        ([top, 0].max...[top + height, @height].min).each { |at| @pixels[(at * @width) + from, count] = row }
      end

      # Draws pixels side by side, from the left one on, `height` times below one another.
      #
      # @param colours [Array<Integer>]
      def row(left, top, colours, height)
        height.times { |line| @pixels[((top + line) * @width) + left, colours.size] = colours }
      end

      # @param style [Symbol] of Font
      # @return [Integer] pixels that the text takes
      def text(left, top, text, colour: 0x1d1f23ff, style: :text)
        base = top + BASELINES.fetch(style)
        Font.all.fetch(style).each_pixel(text) { |column, row, cover| blend(left + column, base + row, colour, cover) }
        text_width(text, style: style)
      end

      # @return [Integer] pixels that a text would take
      def text_width(text, style: :text) = Font.all.fetch(style).width(text)

      # Cells are of one colour or look like noise: packing them harder takes ten times as long and gains nothing.
      #
      # @return [String] the PNG
      def to_png
        canvas = ChunkyPNG::Canvas.new(@width, @height, @pixels)
        Packing.interruptible { canvas.to_blob(color_mode: ChunkyPNG::COLOR_TRUECOLOR, compression: Zlib::BEST_SPEED) }
      end

      private

      # Puts a colour over the pixel's, as far as it is covered.
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
