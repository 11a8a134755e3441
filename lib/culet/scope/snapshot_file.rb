# frozen_string_literal: true

require "zlib"
require_relative "../errors"
require_relative "moment"

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
      # No stream is longer: that of a process with 100 GB of small blocks has less.
      MOST_BYTES = 1 << 31
      # A packed stream is unpacked by pieces, the first so long and each twice as long as the one before: of a series
      # of small ones not much more is looked at than there is.
      FIRST_PIECE_BYTES = 512
      LARGEST_PIECE_BYTES = 1 << 20
      private_constant :GZIP, :MOST_BYTES, :FIRST_PIECE_BYTES, :LARGEST_PIECE_BYTES

      module_function

      # @param path [String]
      # @return [Boolean] whether it begins as a snapshot of this or another version of culet does
      def snapshot?(path) = File.file?(path) && File.binread(path, NAME.bytesize) == NAME

      # @param path [String]
      # @return [Array<Moment>] one, or those of a series in the order they were taken
      # @raise [Culet::Error] when there is no such file, or it is foreign, newer, cut off or damaged
      def moments(path)
        bytes = read(path)
        check_header(path, bytes)
        places = places(path, bytes)
        raise Error, "#{path} is cut off: it has no snapshot; take it again" if places.empty?

        places.map { |at, length| Moment.new(name: path) { Zlib.gunzip(bytes.byteslice(at, length)) } }
      end

      # @param path [String]
      # @return [Array<Snapshot>] of all of them
      # @raise [Culet::Error] as `moments`
      def load(path) = moments(path).map(&:snapshot)

      # @param stream [String] the output of culet-scope
      # @return [String] as it stands in a file behind the header
      def pack(stream) = Zlib.gzip(stream, level: Zlib::BEST_SPEED)

      def read(path)
        raise Error, "#{path} is a directory; name a snapshot or a process number" if File.directory?(path)
        if File.exist?(path) && !File.file?(path)
          raise Error, "#{path} is not a file; give a snapshot or a process number"
        end

        File.binread(path)
      rescue Errno::ENOENT
        raise Error, "there is no file #{path}; give a snapshot or a process number"
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
      end
      private_class_method :read

      def check_header(path, bytes)
        return if bytes.start_with?(HEADER)
        raise Error, "#{path} is cut off; take it again" if HEADER.start_with?(bytes)
        raise Error, "#{path} is not a snapshot; `culet snapshot PID` writes one" unless bytes.start_with?(NAME)

        version = bytes.byteslice(NAME.bytesize, 20)[/\A\S*/]
        raise Error, "#{path} was written by another version of culet (snapshot format #{version.inspect}, " \
                     "this one reads #{VERSION}); read it with that version"
      end
      private_class_method :check_header

      # Unpacks all once to see that it is whole, and keeps nothing.
      #
      # @return [Array<Array(Integer, Integer)>] where each packed stream starts, and how long it is
      def places(path, bytes)
        found = []
        at = HEADER.bytesize
        zlib = Zlib::Inflate.new(GZIP)
        while at < bytes.bytesize
          found << [at, packed_bytes(zlib, bytes, at)]
          at += found.last.last
        end
        found
      rescue Zlib::BufError
        raise Error, "#{path} is cut off#{" behind its first #{found.size} snapshots" if found.any?}; take it again"
      rescue Zlib::Error, RangeError
        raise Error, "#{path} is damaged: it cannot be unpacked; take it again"
      ensure
        zlib&.reset # closing an unfinished one warns
        zlib&.close
      end
      private_class_method :places

      def packed_bytes(zlib, bytes, at)
        zlib.reset
        unpacked = 0
        length = FIRST_PIECE_BYTES
        until zlib.finished?
          piece = bytes.byteslice(at, length)
          raise Zlib::BufError if piece.nil? || piece.empty?

          zlib.inflate(piece) { |part| raise RangeError if (unpacked += part.bytesize) > MOST_BYTES }
          at += piece.bytesize
          length = [length * 2, LARGEST_PIECE_BYTES].min
        end
        zlib.total_in
      end
      private_class_method :packed_bytes
    end
  end
end
