# frozen_string_literal: true

require_relative "../../text/size"
require_relative "model"
require_relative "raster"
require_relative "totals"
require_relative "palette"
require_relative "cells"

module Culet
  module Map
    # The colours of a model's cells.
    class CellColours
      def initialize(model)
        @model = model
        @cells = model.cells
        @low, @high = @cells.used_planes
        @units = model.snapshot.process.page_bytes / Cells::UNIT_BYTES
        @table = Palette::KINDS.each_index.map do |kind|
          Array.new(@units + 1) { |used| Raster.colour(*Palette.shade(kind, used.to_f / @units)) }
        end
      end

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

    # The map of the whole process as a PNG: title, legend, totals, and a cell for every page.
    class Png
      MARGIN = 24
      LINE = 26
      # Width of all cells of a row, about.
      CELLS_WIDTH = 1536
      LARGEST_CELL = 24
      SWATCH = [40, 16].freeze
      COLUMN = 512
      MUTED = 0x62666eff
      GROUND = Raster.colour(*Palette.rgb(Palette::KINDS.first.full))
      private_constant :MARGIN, :LINE, :CELLS_WIDTH, :LARGEST_CELL, :SWATCH, :COLUMN, :MUTED, :GROUND

      # @param widest [Integer] largest number of cells in a row with a pixel each
      # @raise [Scope::Malformed] for an inconsistent snapshot
      def initialize(snapshot, widest: 2048)
        @snapshot = snapshot
        @model = Model.new(snapshot)
        @totals = Totals.new(snapshot)
        @colours = CellColours.new(@model)
        @fold = [(@model.columns / widest.to_f).ceil, 1].max
        @cell = (CELLS_WIDTH * @fold / @model.columns).clamp(1, LARGEST_CELL)
      end

      # @return [String] the bytes of the PNG
      # @raise [Culet::Error] without the chunky_png gem
      def to_s
        @raster = Raster.new(width, head_height + cells_height + MARGIN)
        draw_head
        @raster.fill(0, head_height, @raster.width, @raster.height - head_height, GROUND)
        @model.sections.each { |section| draw_section(section) }
        @raster.to_png
      end

      private

      def width = [cells_width, CELLS_WIDTH].max + (2 * MARGIN)
      def cells_width = @model.columns * @cell / @fold

      # --- Above the cells -----------------------------------------------------

      def lines = [totals_rows, legend.size, 1].max
      def head_height = MARGIN + (LINE * 2) + problems.size * LINE + (lines * LINE) + MARGIN

      # The totals have two columns, the legend the third.
      def totals_rows = (@totals.rows.size / 2.0).ceil

      def problems = @problems ||= [*@snapshot.allocator.why, *@snapshot.problems].reject(&:empty?).uniq

      def draw_head
        title = fitted("#{@totals.subject}, #{@snapshot.time.strftime("%Y-%m-%d %H:%M:%S")}")
        @raster.text(MARGIN, MARGIN, title)
        top = MARGIN + (LINE * 2)
        problems.each_with_index do |text, index|
          @raster.text(MARGIN, top + (index * LINE), fitted(text), colour: 0xa84600ff)
        end
        top += problems.size * LINE
        @totals.rows.each_slice([totals_rows, 1].max).with_index do |rows, column|
          draw_totals(rows, MARGIN + (column * COLUMN), top)
        end
        legend.each_with_index do |(title, from, to), index|
          draw_legend(title, from, to, MARGIN + (2 * COLUMN), top + (index * LINE))
        end
      end

      # Shortens a text that is too wide.
      def fitted(text)
        kept = text.dup
        kept.chop! while @raster.text_width("#{kept}...") > width - (2 * MARGIN)
        kept == text ? text : "#{kept}..."
      end

      def draw_totals(rows, left, top)
        rows.each_with_index do |(_, title, bytes), index|
          figure = Text::Size.human(bytes)
          @raster.text(left, top + (index * LINE), title, colour: MUTED)
          @raster.text(left + COLUMN - 44 - @raster.text_width(figure), top + (index * LINE), figure)
        end
      end

      def draw_legend(title, from, to, left, top)
        wide, high = SWATCH
        @raster.fill(left - 1, top - 1, wide + 2, high + 2, MUTED)
        wide.times do |at|
          colour = from.zip(to).map { |one, other| one + ((other - one) * at / wide) }
          @raster.fill(left + at, top, 1, high, Raster.colour(*colour))
        end
        @raster.text(left + wide + 10, top, title)
      end

      # @return [Array] title, left and right colour of each kind on the map
      def legend
        @legend ||= begin
          occurring = @model.cells.tally(0, @model.cells.size)
          Palette::KINDS.each_with_index.filter_map do |kind, index|
            next if index.zero? || !occurring.key?(index)

            title = kind.shaded? ? "#{kind.title} (left: free)" : kind.title
            [title, Palette.rgb(kind.empty), Palette.rgb(kind.full)]
          end
        end
      end

      # --- The cells -----------------------------------------------------------

      # Headings have the height of text; the rest is to scale.
      HEADING = LINE + 10
      GAP = 4
      private_constant :HEADING, :GAP

      def strip_height(strip) = -(-strip.rows / @fold) * @cell

      def cells_height
        @model.sections.sum { |section| HEADING + section.strips.sum { |strip| strip_height(strip) + GAP } }
      end

      def draw_section(section)
        @top ||= head_height
        resident = @model.tally(section).sum { |kind, bytes| Palette::RESIDENT.include?(kind) ? bytes : 0 }
        @raster.text(MARGIN, @top + 12, fitted(section.group.heading(resident)))
        @top += HEADING
        section.strips.each do |strip|
          draw_strip(strip)
          @top += GAP
        end
      end

      def draw_strip(strip)
        (0...strip.rows).step(@fold) do |row|
          colours = @fold == 1 ? @colours.row(strip, row) : @colours.folded(strip, row, @fold)
          colours = colours.flat_map { |colour| [colour] * @cell } if @cell > 1
          @raster.row(MARGIN, @top, colours, @cell)
          @top += @cell
        end
      end
    end
  end
end
