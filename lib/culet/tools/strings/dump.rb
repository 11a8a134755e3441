# frozen_string_literal: true

require "zlib"
require_relative "../../errors"
require_relative "../../system/input_file"
require_relative "../../text/size"

module Culet
  module Strings
    # The Strings of a file from ObjectSpace.dump_all, plain or gzipped.
    class Dump
      BLOCK_BYTES = 1 << 20
      GZIP = "\x1f\x8b".b.freeze
      # Lines that a packed dump may unpack to, and one more for each of its bytes: dumps have a line for ten.
      FREE_LINES = 200_000
      # Damaged lines reported individually.
      TOLD = 3
      # A file with more is no dump.
      MOST_BROKEN = 10_000
      # Beginnings of a dump's first line.
      STARTS = ['{"address":"0x', '{"type":"ROOT"'].freeze
      private_constant :BLOCK_BYTES, :GZIP, :FREE_LINES, :TOLD, :MOST_BROKEN, :STARTS

      # A file that may be a pipe, and how much of it was read.
      class Source
        attr_reader :bytes

        # @param start [String] what was read of it already
        def initialize(file, start)
          @file = file
          @start = start
          @bytes = 0
        end

        # @param most [Integer]
        # @param buffer [String] gets the bytes
        # @return [String]
        # @raise [EOFError] at the end
        def readpartial(most, buffer = +"")
          if @start.empty? then @file.readpartial(most, buffer)
          else
            buffer.replace(@start)
            @start = ""
          end
          @bytes += buffer.bytesize
          buffer
        end
      end
      private_constant :Source

      # @return [Array<String>] damage of the file
      attr_reader :problems

      # @return [Integer] bytes of the file that were read
      attr_reader :file_bytes

      def initialize(path)
        @path = path
        @problems = []
        @broken = 0
        @file_bytes = 0
      end

      # @param record_file [RecordFile] receives the records
      # @return [Dump] itself
      # @raise [Culet::Error] when the file is no dump
      def read(record_file)
        @record_file = record_file
        @scanner = Scanner.new
        opened { |io| read_blocks(io) }
        read_rest(@scanner.rest)
        @scanner.write(record_file.descriptor, true)
        raise Error, "#{@path} is empty" if lines.zero?

        @problems << "and #{@broken - TOLD} more damaged lines were skipped" if @broken > TOLD
        self
      end

      # @return [String] name of the source
      def name = @path.scrub("?")

      # @return [Hash{String => Object}] figures of the reading
      def reading = { "file_bytes" => @file_bytes, "lines" => lines }

      # @return [nil] no note
      def note = nil

      # @return [Integer] lines read
      def lines = @scanner.lines

      # @return [Integer] Strings found
      def strings = @scanner.strings

      private

      def opened
        InputFile.open(@path, what: "a dump of ObjectSpace.dump_all", pipe: true) do |file|
          start = file.read(GZIP.bytesize).to_s
          @source = Source.new(file, start)
          yield start == GZIP ? Zlib::GzipReader.new(@source) : @source
        end
      rescue Zlib::Error => e
        # A truncated stream: everything before is read already.
        raise Error, "#{@path} cannot be unpacked: #{e.message}" if @scanner.lines.zero?

        @problems << "#{@path} cannot be unpacked beyond line #{@scanner.lines}: #{e.message}; the part before was read"
      end

      def read_blocks(io)
        block = String.new(capacity: BLOCK_BYTES, encoding: Encoding::BINARY)
        loop do
          io.readpartial(BLOCK_BYTES, block)
          @file_bytes = @source.bytes
          @scanner.scan(block).each { |number| broken(number) }
          check_size
          @scanner.write(@record_file.descriptor, false)
        end
      rescue EOFError
        nil # end of file
      end

      def check_size
        return if lines <= FREE_LINES + @file_bytes

        raise Error, "#{@path} is damaged: it unpacks to more than a dump of its size has"
      end

      # The rest after the last line feed: empty for a complete file.
      def read_rest(rest)
        return if rest.empty? || @scanner.scan("\n").empty?
        raise Error, foreign if lines == 1 && !rest.start_with?(*STARTS)

        @problems << "#{@path} is truncated in line #{lines}, after #{Text::Size.human(@file_bytes)}; " \
                     "the part before was read"
      end

      def broken(number)
        raise Error, foreign if number == 1

        @broken += 1
        raise Error, "#{@path} is damaged: more than #{MOST_BROKEN} of its lines are no lines of a dump" if
          @broken > MOST_BROKEN

        @problems << "line #{number} of #{@path} is no line of a dump and was skipped" if @broken <= TOLD
      end

      def foreign
        "#{@path} is no dump of Ruby's objects; " \
          "make one with ObjectSpace.dump_all(output: File.open(\"heap.json\", \"w\"))"
      end
    end
  end
end
