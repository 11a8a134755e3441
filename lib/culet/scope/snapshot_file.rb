# frozen_string_literal: true

require "zlib"
require_relative "../errors"
require_relative "../system/input_file"
require_relative "builder"

module Culet
  module Scope
    # Snapshots in a file: one line of name and version, then one compressed stream for each. What is in it are sizes
    # and states, never contents; still it tells of a process's inner life, so only its owner may read it.
    module SnapshotFile
      NAME = "culet-snapshot "
      VERSION = 1
      HEADER = "#{NAME}#{VERSION}\n".b.freeze
      # zlib's way to say: with gzip's header and checksum.
      GZIP = Zlib::MAX_WBITS + 16
      # The packed bytes of a file: those of a process with 100 GB of small blocks, every second of an hour.
      MOST_BYTES = 1 << 30
      # What a file may unpack to: so much, and so many bytes for each of its own. zlib makes 1,000 of one, but streams
      # have 3 to 30.
      FREE_BYTES = 16 << 20
      MOST_RATIO = 64
      # A packed stream is unpacked by pieces, the first so long and each twice as long as the one before: of a series
      # of small ones not much more is looked at than there is.
      FIRST_PIECE_BYTES = 512
      LARGEST_PIECE_BYTES = 1 << 20
      WHAT = "a snapshot or a process number"
      private_constant :GZIP, :MOST_BYTES, :FREE_BYTES, :MOST_RATIO, :FIRST_PIECE_BYTES, :LARGEST_PIECE_BYTES, :WHAT

      module_function

      # @return [Array<PackedSnapshot>] one, or those of a series in the order they were taken
      # @raise [Culet::Error] when there is no such file, or it is foreign, newer, cut off or damaged
      def packed_snapshots(path)
        InputFile.open(path, what: WHAT, pipe: true) do |file|
          check_header(path, file.read(HEADER.bytesize).to_s, file)
          bytes = "".b
          places = places(path, bytes, file)
          raise Error, "#{path} is cut off: it has no snapshot; take it again" if places.empty?

          places.map { |at, length| PackedSnapshot.new(name: path) { Zlib.gunzip(bytes.byteslice(at, length)) } }
        end
      end

      # @return [Array<Snapshot>] of all of them
      # @raise [Culet::Error] as `packed_snapshots`
      def load(path) = packed_snapshots(path).map(&:snapshot)

      # @param stream [String] the output of culet-scope
      # @return [String] as it stands in a file behind the header
      def pack(stream) = Zlib.gzip(stream, level: Zlib::BEST_SPEED)

      def check_header(path, bytes, file)
        return if bytes == HEADER
        raise Error, "#{path} is cut off; take it again" if HEADER.start_with?(bytes)
        raise Error, "#{path} is not a snapshot; `culet snapshot PID` writes one" unless bytes.start_with?(NAME)

        version = (bytes + file.read(20).to_s).byteslice(NAME.bytesize, 20)[/\A\S*/]
        raise Error, "#{path} was written by another version of culet (snapshot format #{version.inspect}, " \
                     "this one reads #{VERSION}); read it with that version"
      end

      # More than a file with streams unpacks to.
      class Oversize < StandardError; end
      private_constant :Oversize

      # Reads and unpacks all once to see that it is whole, and keeps the packed bytes. Nothing is read behind the first
      # damage.
      #
      # @param bytes [String] gets the packed bytes
      # @return [Array<Array(Integer, Integer)>] where each packed stream starts, and how long it is
      def places(path, bytes, file)
        found = []
        at = unpacked = 0
        zlib = Zlib::Inflate.new(GZIP)
        while more?(bytes, at, file)
          length = packed_bytes(zlib, bytes, at, file) do |part|
            raise Oversize if (unpacked += part.bytesize) > FREE_BYTES + (MOST_RATIO * bytes.bytesize)
          end
          found << [at, length]
          at += length
        end
        found
      rescue Zlib::BufError
        raise Error, "#{path} is cut off#{" behind its first #{found.size} snapshots" if found.any?}; take it again"
      rescue Zlib::Error
        raise Error, "#{path} is damaged: it cannot be unpacked; take it again"
      rescue Oversize
        raise Error, "#{path} is damaged: it unpacks to more than a snapshot of its size has"
      ensure
        zlib&.reset # closing an unfinished one warns
        zlib&.close
      end

      # @yieldparam part [String] unpacked bytes
      # @return [Integer] length of the packed stream at `at`
      def packed_bytes(zlib, bytes, at, file, &unpacked)
        zlib.reset
        length = FIRST_PIECE_BYTES
        until zlib.finished?
          more?(bytes, at, file)
          piece = bytes.byteslice(at, length)
          raise Zlib::BufError if piece.nil? || piece.empty?

          zlib.inflate(piece, &unpacked)
          at += piece.bytesize
          length = [length * 2, LARGEST_PIECE_BYTES].min
        end
        zlib.total_in
      end

      # Reads on where `bytes` has nothing at `at`.
      #
      # @return [Boolean] whether there is anything
      def more?(bytes, at, file)
        return true if at < bytes.bytesize

        piece = file.read(LARGEST_PIECE_BYTES) or return false
        raise Oversize if bytes.bytesize + piece.bytesize > MOST_BYTES

        bytes << piece
        true
      end

      private_class_method :check_header, :places, :packed_bytes, :more?
    end
  end
end
