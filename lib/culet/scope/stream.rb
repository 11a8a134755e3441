# frozen_string_literal: true

require "zlib"
require_relative "../errors"
require_relative "varints"

module Culet
  module Scope
    # The bytes that culet-scope writes: a header, records of type, length and payload, a checksum (reader/format.h).
    class Stream
      NAME = "culet-scope "
      VERSION = 1
      HEADER_BYTES = 16
      HEADER = "#{NAME}#{VERSION}\n".ljust(HEADER_BYTES, "\0").b.freeze
      LAST = "E"
      CHECKSUM_BYTES = 4
      # A record has more bytes on average: that of a mapping has 300, that of a page of Ruby's 60.
      LEAST_BYTES = 16
      # In a small stream.
      FEW_RECORDS = 1000
      private_constant :LEAST_BYTES, :FEW_RECORDS

      # @param bytes [String] one whole stream
      # @param name [String] what to call it in sentences, e.g. a file's name
      def initialize(bytes, name: "the stream")
        @bytes = bytes.b
        @name = name
      end

      # Yields each record but the last, which holds the checksum: that was compared before anything is yielded.
      #
      # @yieldparam type [String] one character
      # @yieldparam payload [String] its bytes
      # @raise [Culet::Error] when this is no stream, one of a newer culet, cut off or changed
      def each_record
        check_header
        last = nil
        records = 0
        each_place do |type, first, length|
          records += 1
          last = [type, first, length]
        end
        check_sum(*last)
        check_number(records)
        each_place { |type, first, length| yield type, @bytes.byteslice(first, length) unless type == LAST }
      end

      private

      def check_header
        start = @bytes.byteslice(0, HEADER_BYTES)
        return if start == HEADER
        raise Error, "#{@name} is cut off; take it again" if HEADER.start_with?(start)
        raise Error, "#{@name} holds nothing that culet-scope wrote" unless start.start_with?(NAME)

        format = start[NAME.size..].delete("\0").strip
        raise Error, "#{@name} was written by another version of culet (format #{format.inspect}, " \
                     "this one reads #{VERSION}); read it with that version"
      end

      # Yields type, first byte and length of each record's payload. Nothing is kept: a stream that packs to nothing may
      # have very many records.
      def each_place
        at = HEADER_BYTES
        type = nil
        until type == LAST
          type = @bytes.byteslice(at, 1)
          length, first = place(at)
          yield type, first, length
          at = first + length
        end
        raise Error, "#{@name} is damaged: something follows its end" if at < @bytes.bytesize
      end

      # @return [Array(Integer, Integer)] length and first byte of the payload of the record at `at`
      def place(at)
        length, first = Varints.one(@bytes, at + 1)
        raise Error, "#{@name} is cut off; take it again" if length.nil? || first + length > @bytes.bytesize
        raise Malformed, "a record in it is empty" if length.zero?

        [length, first]
      rescue Malformed => e
        raise Error, "#{@name} is damaged: #{e.message}"
      end

      def check_number(records)
        return if records <= FEW_RECORDS + (@bytes.bytesize / LEAST_BYTES)

        raise Error, "#{@name} is damaged: it has more records than its size allows"
      end

      # The checksum is of all that stands before its record, whose type and length take two bytes.
      def check_sum(_type, first, length)
        sum = @bytes.byteslice(first, length).unpack1("V") if length == CHECKSUM_BYTES
        return if sum == Zlib.crc32(@bytes.byteslice(0, first - 2))

        raise Error, "#{@name} is damaged: its checksum does not fit; take it again"
      end
    end
  end
end
