# frozen_string_literal: true

require_relative "../../scope"
require_relative "cells"
require_relative "groups"
require_relative "page_states"
require_relative "ruby_fill"

module Culet
  module Map
    # The layout of a snapshot in rows of cells. Each group is a heading and strips; a strip is one or several pieces,
    # each of consecutive pages, row by row.
    class Model
      # row, rows: its rows; cell, cells: first cell and number of cells; pieces: Array of Piece.
      Strip = Struct.new(:row, :rows, :cell, :cells, :pieces, keyword_init: true)

      # address: of the first page; cell: its cell; span: its Span.
      Piece = Struct.new(:address, :pages, :cell, :span, keyword_init: true)

      # A Group with its place. row: of the heading.
      Section = Struct.new(:group, :row, :strips, keyword_init: true)

      COLUMNS = (5..12).flat_map { |power| [1 << power, 3 << (power - 1)] }.sort.freeze
      # Width divided by height, about.
      ASPECT = 1.5
      # 256 GB in pages of 4 KiB.
      MOST_CELLS = 1 << 26
      HEAP = Palette::INDEX.fetch(:heap)
      private_constant :COLUMNS, :ASPECT, :MOST_CELLS, :HEAP

      # sections: Array of Section; columns: cells in a row; rows: in all, headings included; cells: Cells
      attr_reader :snapshot, :sections, :columns, :rows, :cells

      # @param unshared [Array<Array(Integer, Integer)>] start and end of each range of unshared pages
      # @raise [Scope::Malformed] for an inconsistent snapshot
      # @raise [Culet::Error] with more pages than MOST_CELLS
      def initialize(snapshot, unshared: [])
        @snapshot = snapshot
        @page_bytes = snapshot.process.page_bytes
        check

        @states = PageStates.new(snapshot.mappings, page_bytes: @page_bytes)
        groups = Groups.new(snapshot, @states).to_a
        choose_proportions(groups)
        place(groups)
        fill
        unshared.each do |first, past|
          each_range(first, past) { |_, cell, count| cells.flag(cell, count, Cells::UNSHARED) }
        end
      end

      # Rows of a heading, and between two strips: in proportion to the map, but never most of it.
      attr_reader :heading_rows, :gap_rows

      # @param address [Integer] of a page
      # @return [Integer, nil] its cell
      def cell_at(address)
        index = (@ordered.bsearch_index { |piece| piece.address > address } || @ordered.size) - 1
        return if index.negative?

        piece = @ordered[index]
        page = (address - piece.address) / @page_bytes
        piece.cell + page if page < piece.pages
      end

      # @return [Hash{Integer => Integer}] kind => bytes of the section's cells
      def tally(section)
        section.strips.each_with_object(Hash.new(0)) do |strip, sum|
          cells.tally(strip.cell, strip.cells).each { |kind, count| sum[kind] += count * @page_bytes }
        end
      end

      private

      # The layout counts in whole pages.
      def check
        crooked = @snapshot.mappings.find do |mapping|
          mapping.start % @page_bytes != 0 || mapping.end % @page_bytes != 0
        end
        raise Scope::Malformed, "mapping #{crooked.id} is not of whole pages" if crooked
      end

      def pages(span) = (span.past - span.first) / @page_bytes

      def choose_proportions(groups)
        total = groups.sum { |group| group.spans.sum { |span| pages(span) } }
        if total > MOST_CELLS
          raise Error, "process #{@snapshot.pid} has #{total} pages to show; a map can have #{MOST_CELLS}"
        end

        @columns = COLUMNS.find { |columns| columns * columns >= total * ASPECT } || COLUMNS.last
        rows = total / columns
        @heading_rows = (1 + (columns / 64)).clamp(2, [rows / 4 / [groups.size, 1].max, 4].max)
        strips = groups.sum { |group| shelve(group.spans).size }
        @gap_rows = (columns / 256).clamp(1, [rows / 8 / [strips, 1].max, 1].max)
      end

      def place(groups)
        @rows = 0
        @size = 0
        @sections = groups.map do |group|
          section = Section.new(group: group, row: @rows, strips: [])
          @rows += heading_rows
          shelve(group.spans).each { |spans| section.strips << strip(spans) }
          section
        end
        @ordered = sections.flat_map(&:strips).flat_map(&:pieces).sort_by(&:address)
      end

      # Spans shorter than a row share a strip.
      def shelve(spans)
        spans.each_with_object([]) do |span, shelves|
          small = pages(span) < columns
          if small && shelves.last&.first == :small
            shelves.last.last << span
          else
            shelves << [small ? :small : :large, [span]]
          end
        end.map(&:last)
      end

      # An empty cell separates the pieces of a strip.
      def strip(spans)
        first = @size
        pieces = spans.map do |span|
          piece = Piece.new(address: span.first, pages: pages(span), cell: @size, span: span)
          @size += piece.pages + 1
          piece
        end
        @size -= 1
        rows = -(-(@size - first) / columns)
        strip = Strip.new(row: @rows, rows: rows, cell: first, cells: @size - first, pieces: pieces)
        @rows += rows + gap_rows
        strip
      end

      def fill
        @cells = Cells.new(@size)
        @ordered.each { |piece| show_states(piece) }
        kinds = @snapshot.regions.to_h { |region| [region.id, region_kind(region)] }
        @snapshot.regions.each { |region| show_region(region, kinds.fetch(region.id)) }
        RubyFill.new(self, @page_bytes).call
      end

      def show_states(piece)
        mapping = piece.span.mapping
        kind = mapping ? Palette.kind_of_use(@snapshot.rest_use(mapping)) : Palette::INDEX.fetch(:heap)
        @states.each_run(piece.address, piece.address + (piece.pages * @page_bytes)) do |first, pages, bits|
          @cells.put(piece.cell + ((first - piece.address) / @page_bytes), pages, kind_of(bits, kind), flags(bits))
        end
      end

      def kind_of(bits, resident)
        if bits & Scope::Mapping::SWAPPED != 0 then Palette::INDEX.fetch(:swapped)
        elsif bits & (Scope::Mapping::PRESENT | Scope::Mapping::ZERO) == Scope::Mapping::PRESENT then resident
        else Palette::INDEX.fetch(:returned)
        end
      end

      # A file page counts as shared even if no other process maps it now.
      def flags(bits)
        return 0 if (bits & Scope::Mapping::PRESENT).zero?

        bits & Scope::Mapping::EXCLUSIVE != 0 && (bits & Scope::Mapping::FILE).zero? ? Cells::PRIVATE : Cells::SHARED
      end

      def region_kind(region)
        case region.holds
        when "ruby", "transient" then Palette::INDEX.fetch(:ruby)
        when "metadata" then Palette::INDEX.fetch(:metadata)
        else Palette::INDEX.fetch(:heap)
        end
      end

      # Bytes in use arrive in runs: a process of 10 GB has millions of pages.
      def show_region(region, kind)
        values = region.fill_runs.flat_map { |pages, used| [pages, used] }
        at = region.start / @page_bytes * @page_bytes
        index = 0
        each_range(at, -(-region.end / @page_bytes) * @page_bytes) do |first, cell, count|
          index, at = skip(values, index, at, first)
          past = cell + count
          while cell < past && index < values.size
            pages = [values[index], past - cell].min
            show_used(cell, pages, values[index + 1], kind)
            cell += pages
            at += pages * @page_bytes
            (values[index] -= pages).zero? && index += 2
          end
        end
      end

      # Skips the pages before `first`, which are not shown.
      def skip(values, index, at, first)
        while at < first && index < values.size
          pages = [values[index], (first - at) / @page_bytes].min
          at += pages * @page_bytes
          (values[index] -= pages).zero? && index += 2
        end
        [index, at]
      end

      # The page between two regions belongs to both.
      def show_used(cell, count, used, kind)
        used = [used + @cells.used_bytes(cell), @page_bytes].min if count == 1
        @cells.use(cell, count, used)
        return if kind == HEAP

        count.times { |index| @cells.change(cell + index, kind) if @cells.kind(cell + index) == HEAP }
      end

      # Yields the cells of the pages between two addresses: address, first cell, number.
      def each_range(from, to)
        index = @ordered.bsearch_index { |piece| piece.address + (piece.pages * @page_bytes) > from } || @ordered.size
        while index < @ordered.size && @ordered[index].address < to
          piece = @ordered[index]
          first = [from, piece.address].max
          past = [to, piece.address + (piece.pages * @page_bytes)].min
          yield first, piece.cell + ((first - piece.address) / @page_bytes), (past - first) / @page_bytes
          index += 1
        end
      end
    end
  end
end
