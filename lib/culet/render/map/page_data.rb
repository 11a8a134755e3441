# frozen_string_literal: true

require "json"
require_relative "model"
require_relative "../packing"
require_relative "../../scope/varints"
require_relative "palette"
require_relative "totals"

module Culet
  module Map
    # The data elements of one snapshot for the page's scripts: facts, cells, blocks and slots.
    class PageData
      # @param unshared [Array<Array(Integer, Integer)>, nil] start and end of each range of unshared pages; nil: a
      #   single process
      # @param caption [String, nil] its name in a series
      # @param tables [Array<Hash>] tables beside the map: "title", "columns" (Array of Strings), "rows" (Arrays of a
      #   String and bytes for each column)
      # @raise [Scope::Malformed] for an inconsistent snapshot
      def initialize(snapshot, unshared: nil, caption: nil, tables: [])
        @snapshot = snapshot
        @model = Model.new(snapshot, unshared: unshared.to_a)
        @sharing = !unshared.nil?
        @caption = caption
        @tables = tables
        @totals = Totals.new(snapshot)
      end

      # @return [Hash{Symbol => String}] part => zlib stream in base64; empty parts are omitted
      def parts
        @parts ||= { facts: JSON.generate(facts), cells: planes.join, blocks: blocks, slots: slots }
                   .reject { |_, bytes| bytes.empty? }.transform_values { |bytes| Packing.base64(bytes) }
      end

      # @return [Array<String>] the planes of the cells: their states, and the low and high bytes of what is in use
      def planes = [@model.cells.states, *@model.cells.used_planes]

      # @return [Hash{String => Object}] everything about the map but its cells
      def facts
        { "subject" => @totals.subject, "moment" => moment, "caption" => @caption, "tables" => @tables,
          "sharing" => @sharing, "pause" => pause, "problems" => problems, "totals" => @totals.rows,
          "process" => @snapshot.process.to_h, "sizes" => @snapshot.sizes&.fetch("buckets", nil),
          "kinds" => Palette::KINDS.map(&:to_h),
          "block_colours" => Palette::BLOCKS, "dark_block_colours" => Palette::DARK_BLOCKS, "columns" => @model.columns,
          "rows" => @model.rows, "heading_rows" => @model.heading_rows, "cells" => @model.cells.size,
          "sections" => @model.sections.map { |section| section(section) }, "mappings" => mappings }
      end

      private

      def problems
        why = @snapshot.allocator.why
        [*(why if why && !why.empty?), *@snapshot.problems].uniq
      end

      def moment = @snapshot.time.strftime("%Y-%m-%d %H:%M:%S")

      def pause
        seconds = @snapshot.malloc&.to_h&.fetch("pause_seconds", nil)
        return unless seconds.is_a?(Numeric)

        @snapshot.process.mode == "live" ? "not paused" : "longest pause #{format("%.1f", seconds * 1000)} ms"
      end

      def section(section)
        figures = @model.tally(section)
        resident = figures.sum { |kind, bytes| Palette::RESIDENT.include?(kind) ? bytes : 0 }
        { "key" => section.group.key, "title" => section.group.title, "row" => section.row,
          "resident_bytes" => resident, "heading" => section.group.heading(resident),
          "strips" => section.strips.map { |strip| strip(strip) } }
      end

      def strip(strip)
        { "row" => strip.row, "rows" => strip.rows, "cell" => strip.cell, "cells" => strip.cells,
          "pieces" => strip.pieces.map { |piece| [piece.address, piece.pages, piece.cell, mapping_of(piece)] } }
      end

      # Index into "mappings" for the start of a piece.
      def mapping_of(piece)
        @snapshot.mappings.bsearch_index { |mapping| mapping.end > piece.address }
                 &.then { |index| index if @snapshot.mappings[index].start <= piece.address }
      end

      def mappings = @snapshot.mappings.map { |mapping| { "label" => mapping.label, "path" => mapping.path } }

      # For each region: its start, the length of the blocks, and the blocks as in the snapshot.
      def blocks
        @snapshot.regions.each_with_object("".b) do |region, out|
          next if region.chunks_payload.empty?

          Scope::Varints.append(out, region.start, region.chunks_payload.bytesize)
          out << region.chunks_payload
        end
      end

      # The Ruby pages as in the snapshot.
      def slots
        @snapshot.ruby_pages.each_with_object("".b) do |page, out|
          Scope::Varints.append(out, page.address, page.slot_bytes, page.first_slot, page.slots)
          out << page.live
        end
      end
    end
  end
end
