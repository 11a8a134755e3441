# frozen_string_literal: true

require_relative "palette"

module Culet
  module Map
    # What every cell of the picture is: one byte of kind and flags, and the bytes in use of it. A process of 10 GB has
    # 2.6 million, so they are Strings, changed in runs.
    class Cells
      # Low bits of a state: the kind, an index into Palette::KINDS. Above them: the page is this process's alone; it is
      # another process's too, or a file's; it was another's too, and is not any more.
      KIND = 0x0f
      PRIVATE = 0x10
      SHARED = 0x20
      UNSHARED = 0x40

      # Bytes in use are told in these: the smallest step between two blocks that any malloc here has.
      UNIT_BYTES = 8

      # @param size [Integer] how many cells
      def initialize(size)
        @states = "\0".b * size
        @low = "\0".b * size
        @high = "\0".b * size
      end

      # @return [String] a byte of kind and flags for each cell
      attr_reader :states

      # @return [Array(String, String)] the units in use of each cell, their low bytes and their high bytes
      def used_planes = [@low, @high]

      def size = @states.bytesize

      # @param cell [Integer]
      # @return [Integer] index of its kind
      def kind(cell) = @states.getbyte(cell) & KIND

      # @param cell [Integer]
      # @return [Integer] bytes in use in it
      def used_bytes(cell) = (@low.getbyte(cell) | (@high.getbyte(cell) << 8)) * UNIT_BYTES

      # @param from [Integer] the first cell
      # @param count [Integer]
      # @param kind [Integer]
      # @param flags [Integer]
      def put(from, count, kind, flags) = run(@states, from, count, kind | flags)

      # @param cell [Integer]
      # @param kind [Integer] in the place of the one it has; its flags stay
      def change(cell, kind) = @states.setbyte(cell, (@states.getbyte(cell) & ~KIND) | kind)

      # @param from [Integer] the first cell
      # @param count [Integer]
      # @param flags [Integer] added to those it has
      def flag(from, count, flags) = (from...(from + count)).each { |cell| @states.setbyte(cell, @states.getbyte(cell) | flags) }

      # @param from [Integer] the first cell
      # @param count [Integer]
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

      # @param range [Range] of cells
      # @return [Hash{Integer => Integer}] kind => how many of it are there
      def tally(from, count) = @states.byteslice(from, count).each_byte.tally.each_with_object(Hash.new(0)) { |(state, number), sum| sum[state & KIND] += number }

      private

      def run(plane, from, count, byte)
        return plane.setbyte(from, byte) if count == 1

        plane[from, count] = byte.chr * count
      end
    end
  end
end
