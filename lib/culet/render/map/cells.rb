# frozen_string_literal: true

require_relative "palette"

module Culet
  module Map
    # The state of every cell: a byte of kind and flags, and the bytes in use. A process of 10 GB has 2.6 million cells,
    # so the planes are Strings that are changed in runs.
    class Cells
      # The low bits of a state are the kind, an index into Palette::KINDS. Flags: the page is private; it is shared or
      # file-backed; it was unshared after the fork.
      KIND = 0x0f
      PRIVATE = 0x10
      SHARED = 0x20
      UNSHARED = 0x40

      # Bytes in use are counted in units of the smallest block alignment of the known allocators.
      UNIT_BYTES = 8

      # @param size [Integer] number of cells
      def initialize(size)
        @states = "\0".b * size
        @low = "\0".b * size
        @high = "\0".b * size
      end

      # @return [String] a byte of kind and flags for each cell
      attr_reader :states

      # @return [Array(String, String)] the units in use of each cell, their low bytes and their high bytes
      def used_planes = [@low, @high]

      # @return [Integer] number of cells
      def size = @states.bytesize

      # @param cell [Integer]
      # @return [Integer] index of its kind
      def kind(cell) = @states.getbyte(cell) & KIND

      # @param cell [Integer]
      # @return [Integer] bytes in use in it
      def used_bytes(cell) = (@low.getbyte(cell) | (@high.getbyte(cell) << 8)) * UNIT_BYTES

      # @param from [Integer] the first cell
      # @param kind [Integer]
      # @param flags [Integer]
      def put(from, count, kind, flags) = run(@states, from, count, kind | flags)

      # @param cell [Integer]
      # @param kind [Integer] replaces the kind; flags stay
      def change(cell, kind) = @states.setbyte(cell, (@states.getbyte(cell) & ~KIND) | kind)

      # @param from [Integer] the first cell
      # @param flags [Integer] added to the existing ones
      def flag(from, count, flags)
        (from...(from + count)).each { |cell| @states.setbyte(cell, @states.getbyte(cell) | flags) }
      end

      # @param from [Integer] the first cell
      # @param bytes [Integer] in use in each
      def use(from, count, bytes)
        units = bytes / UNIT_BYTES
        if count == 1
          @low.setbyte(from, units & 0xff)
          @high.setbyte(from, units >> 8)
          return
        end
        run(@low, from, count, units & 0xff)
        run(@high, from, count, units >> 8)
      end

      # @param from [Integer] the first cell
      # @param count [Integer] of cells
      # @return [Hash{Integer => Integer}] kind => number of cells
      def tally(from, count)
        states = @states.byteslice(from, count).each_byte.tally
        states.each_with_object(Hash.new(0)) { |(state, number), sum| sum[state & KIND] += number }
      end

      private

      def run(plane, from, count, byte)
        return plane.setbyte(from, byte) if count == 1

        plane[from, count] = byte.chr * count
      end
    end
  end
end
