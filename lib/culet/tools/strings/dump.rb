# frozen_string_literal: true

require "json"
require "zlib"
require_relative "../../errors"
require_relative "../../text/size"
require_relative "spool"

module Culet
  module Strings
    # The Strings of a file that ObjectSpace.dump_all wrote, plain or gzipped, read once from its start to its end.
    #
    # Lines in the form that Ruby writes are taken apart by the extension; every other one, such as those with escapes, by
    # the JSON library.
    class Dump
      BLOCK_BYTES = 1 << 20
      GZIP = "\x1f\x8b".b.freeze
      # So many broken lines are told one by one.
      TOLD = 3
      # How the first line of a dump begins.
      STARTS = ['{"address":"0x', '{"type":"ROOT"'].freeze
      # What a String's line can hold, where it holds it. Figures: CULET_DUMP_LINE_MAX of ext/culet/strings/dump_line.h.
      ADDRESS = /\A0x\h{1,16}\z/
      ADDRESSES = %w[address class].freeze
      FIGURES = { "memsize" => 1 << 47, "bytesize" => 1 << 47, "line" => 1 << 47, "slot_size" => (1 << 32) - 1 }.freeze
      private_constant :BLOCK_BYTES, :GZIP, :TOLD, :STARTS, :ADDRESS, :ADDRESSES, :FIGURES

      # @return [Integer] lines read
      attr_reader :lines

      # @return [Array<String>] what is wrong with the file, in sentences
      attr_reader :problems

      # @return [Integer] bytes of the file
      attr_reader :file_bytes

      # @param path [String]
      # @raise [Culet::Error] when there is no such file, or it is none
      def initialize(path)
        @path = path
        raise Error, "there is no file #{path}" unless File.exist?(path)
        raise Error, "#{path} is a directory; name a dump in it" if File.directory?(path)

        @problems = []
        @broken = 0
        @lines = 0
        @file_bytes = File.size(path)
      end

      # @param spool [Spool] gets the records
      # @return [Dump] itself
      # @raise [Culet::Error] when it is no dump
      def read(spool)
        @spool = spool
        @scanner = Scanner.new
        opened { |io| read_blocks(io) }
        @lines = @scanner.lines
        read_rest(@scanner.rest)
        @scanner.write(spool.descriptor, true)
        raise Error, "#{@path} is empty" if @lines.zero?

        @problems << "and #{@broken - TOLD} more lines that were passed over" if @broken > TOLD
        self
      rescue SystemCallError => e
        raise Error, "cannot read #{@path}: #{e.message.sub(/ @ .*/, "")}"
      end

      # @return [String] what it is
      def name = @path.scrub("?")

      # @return [Hash{String => Object}] how the reading went
      def reading = { "file_bytes" => @file_bytes, "lines" => @lines }

      # @return [nil] there is nothing to say of it
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
        # A file that is cut off within the stream: all before it is read already.
        raise Error, "#{@path} cannot be unpacked: #{e.message}" if @scanner.lines.zero?

        @problems << "#{@path} cannot be unpacked beyond line #{@scanner.lines}: #{e.message}; what stands before was read"
      end

      def read_blocks(io)
        block = String.new(capacity: BLOCK_BYTES, encoding: Encoding::BINARY)
        loop do
          io.readpartial(BLOCK_BYTES, block)
          @scanner.scan(block).each { |number, line| (line && parse(line)) or broken(number) }
          @scanner.write(@spool.descriptor, false)
        end
      rescue EOFError
        nil # that was all
      end

      # What stands behind the last line's end: nothing, if the file is whole.
      def read_rest(rest)
        return if rest.empty?

        @lines += 1
        return if parse(rest)
        raise Error, foreign if @lines == 1 && !rest.start_with?(*STARTS)

        @problems << "#{@path} breaks off in line #{@lines}, after #{Text::Size.human(@file_bytes)}; what stands before was read"
      end

      # @return [Boolean] whether it is a line of a dump
      # @raise [Culet::Error] when it is JSON of another kind
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
          FIGURES.all? { |key, most| !fields.key?(key) || (fields[key].is_a?(Integer) && fields[key].between?(0, most)) }
      end

      def broken(number)
        raise Error, foreign if number == 1

        @broken += 1
        @problems << "line #{number} of #{@path} is no line of a dump and was passed over" if @broken <= TOLD
      end

      def foreign = "#{@path} is no dump of Ruby's objects; make one with ObjectSpace.dump_all(output: File.open(\"heap.json\", \"w\"))"
    end
  end
end
