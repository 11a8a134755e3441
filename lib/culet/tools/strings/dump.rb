# frozen_string_literal: true

require "json"
require "zlib"
require_relative "../../errors"
require_relative "../../text/size"
require_relative "record_file"

module Culet
  module Strings
    # The Strings of a file from ObjectSpace.dump_all, plain or gzipped.
    #
    # The extension parses lines in the form that Ruby writes, the JSON library all others, such as lines with escapes.
    class Dump
      BLOCK_BYTES = 1 << 20
      GZIP = "\x1f\x8b".b.freeze
      # Damaged lines reported individually.
      TOLD = 3
      # Beginnings of a dump's first line.
      STARTS = ['{"address":"0x', '{"type":"ROOT"'].freeze
      # Limits of a String's line. Figures: CULET_DUMP_LINE_MAX of ext/culet/strings/dump_line.h.
      ADDRESS = /\A0x\h{1,16}\z/
      ADDRESSES = %w[address class].freeze
      FIGURES = { "memsize" => 1 << 47, "bytesize" => 1 << 47, "line" => 1 << 47, "slot_size" => (1 << 32) - 1 }.freeze
      private_constant :BLOCK_BYTES, :GZIP, :TOLD, :STARTS, :ADDRESS, :ADDRESSES, :FIGURES

      # @return [Integer] lines read
      attr_reader :lines

      # @return [Array<String>] damage of the file
      attr_reader :problems

      # @return [Integer] bytes of the file
      attr_reader :file_bytes

      # @param path [String]
      # @raise [Culet::Error] without such a file
      def initialize(path)
        @path = path
        raise Error, "there is no file #{path}" unless File.exist?(path)
        raise Error, "#{path} is a directory; name a dump in it" if File.directory?(path)

        @problems = []
        @broken = 0
        @lines = 0
        @file_bytes = File.size(path)
      end

      # @param record_file [RecordFile] receives the records
      # @return [Dump] itself
      # @raise [Culet::Error] when the file is no dump
      def read(record_file)
        @record_file = record_file
        @scanner = Scanner.new
        opened { |io| read_blocks(io) }
        @lines = @scanner.lines
        read_rest(@scanner.rest)
        @scanner.write(record_file.descriptor, true)
        raise Error, "#{@path} is empty" if @lines.zero?

        @problems << "and #{@broken - TOLD} more damaged lines were skipped" if @broken > TOLD
        self
      rescue SystemCallError => e
        raise Error, "cannot read #{@path}: #{e.message.sub(/ @ .*/, "")}"
      end

      # @return [String] name of the source
      def name = @path.scrub("?")

      # @return [Hash{String => Object}] figures of the reading
      def reading = { "file_bytes" => @file_bytes, "lines" => @lines }

      # @return [nil] no note
      def note = nil

      # @return [Integer] Strings found
      def strings = @scanner.strings

      private

      def opened
        File.open(@path, "rb") do |file|
          gzip = file.read(GZIP.bytesize) == GZIP
          file.rewind
          gzip ? yield(Zlib::GzipReader.new(file)) : yield(file)
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
          @scanner.scan(block).each { |number, line| (line && parse(line)) or broken(number) }
          @scanner.write(@record_file.descriptor, false)
        end
      rescue EOFError
        nil # end of file
      end

      # The rest after the last line feed: empty for a complete file.
      def read_rest(rest)
        return if rest.empty?

        @lines += 1
        return if parse(rest)
        raise Error, foreign if @lines == 1 && !rest.start_with?(*STARTS)

        @problems << "#{@path} is truncated in line #{@lines}, after #{Text::Size.human(@file_bytes)}; " \
                     "the part before was read"
      end

      # @return [Boolean] whether the line belongs to a dump
      # @raise [Culet::Error] for JSON of another kind
      def parse(line)
        fields = JSON.parse(line.force_encoding(Encoding::UTF_8).scrub)
        raise Error, foreign unless fields.is_a?(Hash) && (fields.key?("address") || fields["type"] == "ROOT")

        return true unless fields["type"] == "STRING" && fields.key?("memsize")
        return false unless sound?(fields)

        @scanner.add(fields)
        true
      rescue JSON::ParserError
        false
      end

      def sound?(fields)
        ADDRESSES.all? { |key| !fields.key?(key) || (fields[key].is_a?(String) && fields[key].match?(ADDRESS)) } &&
          FIGURES.all? do |key, most|
            !fields.key?(key) || (fields[key].is_a?(Integer) && fields[key].between?(0, most))
          end
      end

      def broken(number)
        raise Error, foreign if number == 1

        @broken += 1
        @problems << "line #{number} of #{@path} is no line of a dump and was skipped" if @broken <= TOLD
      end

      def foreign
        "#{@path} is no dump of Ruby's objects; " \
          "make one with ObjectSpace.dump_all(output: File.open(\"heap.json\", \"w\"))"
      end
    end
  end
end
