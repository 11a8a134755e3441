# frozen_string_literal: true

module Culet
  module Profile
    # Writes messages of Protocol Buffers (encoding.md of the protobuf documentation): fields of varints and of bytes.
    class Protobuf
      BYTES = 2
      private_constant :BYTES

      def initialize
        @text = +"".b
      end

      # @return [String] the message
      def to_s = @text

      # Fields of value 0 are left out, as the format's default.
      #
      # @param field [Integer]
      # @param value [Integer] signed, 64 bits
      # @return [Protobuf] itself
      def number(field, value)
        varint(field << 3).varint(value & 0xffff_ffff_ffff_ffff) unless value.zero?
        self
      end

      # @param field [Integer]
      # @param text [String]
      # @return [Protobuf] itself
      def bytes(field, text)
        varint((field << 3) | BYTES).varint(text.bytesize)
        @text << text.b
        self
      end

      # @param field [Integer]
      # @param values [Array<Integer>] one packed field
      # @return [Protobuf] itself
      def packed(field, values)
        inner = Protobuf.new
        values.each { |value| inner.varint(value & 0xffff_ffff_ffff_ffff) }
        values.empty? ? self : bytes(field, inner.to_s)
      end

      # @param field [Integer]
      # @yieldparam message [Protobuf] the message inside
      # @return [Protobuf] itself
      def message(field)
        inner = Protobuf.new
        yield inner
        bytes(field, inner.to_s)
      end

      # @param value [Integer] not negative
      # @return [Protobuf] itself
      def varint(value)
        while value > 127
          @text << ((value & 127) | 128)
          value >>= 7
        end
        @text << value
        self
      end
    end
  end
end
