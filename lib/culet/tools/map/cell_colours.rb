# frozen_string_literal: true

require_relative "palette"
require_relative "cells"
require_relative "raster"

module Culet
  module Map
    # The colours of a model's cells.
    class CellColours
      # @param model [Model]
      def initialize(model)
        @model = model
        @cells = model.cells
        @low, @high = @cells.used_planes
        @units = model.snapshot.process.page_bytes / Cells::UNIT_BYTES
        @table = Palette::KINDS.each_index.map do |kind|
          Array.new(@units + 1) { |used| Raster.colour(*Palette.shade(kind, used.to_f / @units)) }
        end
      end

      # @param strip [Model::Strip]
      # @param row [Integer] of the strip
      # @return [Array<Integer>] a colour for each cell of the row
      def row(strip, row)
        from = strip.cell + (row * @model.columns)
        past = [from + @model.columns, strip.cell + strip.cells].min
        (from...past).map do |cell|
          used = @low.getbyte(cell) | (@high.getbyte(cell) << 8)
          @table[@cells.kind(cell)][[used, @units].min]
        end
      end

      # @param row [Integer] the first of `fold` rows
      # @param fold [Integer] cells per pixel in both directions
      # @return [Array<Integer>] the mean colour of each square of cells
      def folded(strip, row, fold)
        rows = (row...[row + fold, strip.rows].min).map { |one| row(strip, one) }
        (0...rows.first.size).step(fold).map { |from| mean(rows.flat_map { |colours| colours[from, fold] || [] }) }
      end

      private

      def mean(colours)
        channels = [24, 16, 8].map { |shift| colours.sum { |colour| (colour >> shift) & 0xff } / colours.size }
        Raster.colour(*channels)
      end
    end
  end
end
