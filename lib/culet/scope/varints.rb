# frozen_string_literal: true

require_relative "../errors"

module Culet
  module Scope
    # Bytes that are not what their place calls for. Whoever knows where they came from makes a sentence of it.
    class Malformed < Error; end

    # Whole numbers of any length in groups of seven bits, the lowest first (LEB128, DWARF 5, section 7.6).
    module Varints
      # No number of a stream takes more: 64 bits.
      LONGEST_BYTES = 10
      CONTINUED = 0x80
      # Shift of the group of bits behind the last one.
      LONGEST_SHIFT = 7 * LONGEST_BYTES
      LONGER = "a number in it is longer than 64 bits"
      private_constant :CONTINUED, :LONGEST_SHIFT, :LONGER

      module_function

      # @param out [String] in bytes, appended to
      # @param numbers [Array<Integer>] not negative
      # @return [String] `out`
      def append(out, *numbers)
        numbers.each do |number|
          while number >= CONTINUED
            out << ((number & 0x7f) | CONTINUED)
            number >>= 7
          end
          out << number
        end
        out
      end

      # @param bytes [String]
      # @return [Array<Integer>] all numbers in it
      # @raise [Malformed] when the last one is cut off, or one is longer than any that is written
      def all(bytes)
        return bytes.bytes if bytes.ascii_only? # one byte each

        values = []
        value = shift = 0
        bytes.each_byte do |byte|
          if byte < CONTINUED
            values << (value | (byte << shift))
            value = shift = 0
          else
            value |= (byte & 0x7f) << shift
            raise Malformed, LONGER if (shift += 7) >= LONGEST_SHIFT
          end
        end
        raise Malformed, "a number in it is cut off" if shift.positive?

        values
      end

      # @param bytes [String]
      # @param at [Integer] where the number starts
      # @return [Array(Integer, Integer), nil] the number, and where the next thing starts; nil when it is cut off
      # @raise [Malformed] when it is longer than any that is written
      def one(bytes, at)
        value = shift = 0
        while (byte = bytes.getbyte(at))
          at += 1
          return [value | (byte << shift), at] if byte < CONTINUED

          value |= (byte & 0x7f) << shift
          raise Malformed, LONGER if (shift += 7) >= LONGEST_SHIFT
        end
      end
    end
  end
end
