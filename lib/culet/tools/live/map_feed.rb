# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../scope"
require_relative "../../system/clock"
require_relative "../../render/map"
require_relative "../../render/packing"
require_relative "../../render/map/page_data"
require_relative "merge_patch"

module Culet
  module Live
    # The map of one process, again and again: the first time whole, then what changed. Both sides carry the cells of
    # the reading before over to the new layout, address by address, and only the runs that differ then are sent.
    class MapFeed
      # From one reading to the next: each pauses the process for some milliseconds.
      LEAST_SECONDS = 2.0
      # A reading takes at most this part of the time.
      SHARE = 5
      # Cells that are compared, and sent, together.
      RUN_CELLS = 64
      Reading = Struct.new(:version, :facts, :planes)
      private_constant :LEAST_SECONDS, :SHARE, :RUN_CELLS, :Reading

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
        @lock = Mutex.new
        @due = Clock.now
        @used = Clock.now
      end

      # @return [Float] when it was called last, by the monotonic clock
      attr_reader :used

      # @param version [Integer, nil] of the reading that the page has
      # @return [Hash{String => Object}] "version"; "base": the version that the rest is a change of, or nil; "facts" (a
      #   merge patch with a base), "runs" (first cell and number of each) and "cells" (their planes, one after the
      #   other: a zlib stream in base64)
      # @raise [Culet::Error] when the process cannot be read
      def call(version)
        @lock.synchronize do
          @used = Clock.now
          read if @due <= Clock.now
          case version
          when @reading.version then unchanged
          when @reading.version - 1 then @change
          else whole
          end
        end
      end

      private

      def read
        began = Clock.now
        data = Map::PageData.new(Scope.snapshots(@pid.to_s, chunks: 0).last)
        before = @reading
        @reading = Reading.new(before.to_a.first.to_i + 1, MergePatch.compact(data.facts), data.planes)
        @change = before && change(before)
        @whole = nil
      rescue Scope::Malformed => e
        raise Error, "the data read from #{@pid} is inconsistent: #{e.message}"
      ensure
        @due = Clock.now + [LEAST_SECONDS, SHARE * (Clock.now - began)].max
      end

      def unchanged = message(@reading.version, {}, [])

      def whole = @whole ||= message(nil, @reading.facts, [[0, size]])

      def change(before)
        carried = carry(before)
        message(before.version, MergePatch.diff(before.facts, @reading.facts), runs(carried))
      end

      def size = @reading.planes.first.bytesize

      def message(base, facts, runs)
        cells = @reading.planes.map { |plane| runs.map { |first, count| plane.byteslice(first, count) }.join }.join
        { "version" => @reading.version, "base" => base, "facts" => facts, "runs" => runs,
          "cells" => Packing.base64(cells) }
      end

      # @return [Array<String>] planes of the new layout with the cells of the old one
      def carry(before)
        planes = Array.new(3) { "\0".b * size }
        old = pieces(before.facts)
        page = @reading.facts.fetch("process").fetch("page_bytes")
        pieces(@reading.facts).each { |piece| carry_piece(piece, old, page, before.planes, planes) }
        planes
      end

      # Pieces are address, pages and first cell.
      def pieces(facts) = facts["sections"].flat_map { |one| one["strips"] }.flat_map { |one| one["pieces"] }.sort

      def carry_piece(piece, old, page, from, into)
        address, pages, cell = piece
        past = address + (pages * page)
        at = old.bsearch_index { |one| one[0] + (one[1] * page) > address } || old.size
        while (start, count, first = old[at]) && start < past
          low = [start, address].max
          cells = ([start + (count * page), past].min - low) / page
          3.times do |index|
            into[index][cell + ((low - address) / page), cells] =
              from[index].byteslice(first + ((low - start) / page), cells)
          end
          at += 1
        end
      end

      # @return [Array<Array(Integer, Integer)>] first cell and number of the runs that differ
      def runs(carried)
        0.step(size - 1, RUN_CELLS).each_with_object([]) do |first, runs|
          next if 3.times.all? { |at| equal_run?(carried[at], @reading.planes[at], first) }

          count = [RUN_CELLS, size - first].min
          runs.any? && runs.last.sum == first ? runs.last[1] += count : runs << [first, count]
        end
      end

      def equal_run?(one, other, first) = one.byteslice(first, RUN_CELLS) == other.byteslice(first, RUN_CELLS)
    end
  end
end
