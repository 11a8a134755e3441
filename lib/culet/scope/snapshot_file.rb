# frozen_string_literal: true

require "zlib"
require_relative "../errors"
require_relative "builder"
require_relative "snapshot"

module Culet
  module Scope
    # Snapshots in a file: one line of name and version, then one compressed stream for each. What is in it are sizes and
    # states, never contents; still it tells of a process's inner life, so only its owner may read it.
    module SnapshotFile
      NAME = "culet-snapshot "
      VERSION = 1
      HEADER = "#{NAME}#{VERSION}\n".b.freeze
      MODE = 0o600
      # zlib's way to say: with gzip's header and checksum.
      GZIP = Zlib::MAX_WBITS + 16
      private_constant :GZIP

      module_function

      # @param path [String]
      # @return [Boolean] whether it begins as a snapshot of this or another version of culet does
      def snapshot?(path) = File.file?(path) && File.binread(path, NAME.bytesize) == NAME

      # @param path [String]
      # @return [Array<Snapshot>] one, or those of a series in the order they were taken
      # @raise [Culet::Error] when there is no such file, or it is foreign, newer, cut off or damaged
      def load(path) = streams(path).map { |bytes| Builder.new(bytes, name: path).call }

      # @param path [String]
      # @return [Array<String>] the streams in it, not yet looked at
      # @raise [Culet::Error] as `load`
      def streams(path)
        bytes = read(path)
        check_header(path, bytes)
        found = members(path, bytes)
        raise Error, "#{path} is cut off: there is no snapshot in it; take it again" if found.empty?

        found
      end

      # @param stream [String] what culet-scope wrote
      # @return [String] as it stands in a file behind the header
      def pack(stream) = Zlib.gzip(stream, level: Zlib::BEST_SPEED)

      def read(path)
        raise Error, "#{path} is a directory; name a snapshot or a process number" if File.directory?(path)

        File.binread(path)
      rescue Errno::ENOENT
        raise Error, "there is no file #{path}; name a snapshot or a process number"
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
      end
      private_class_method :read

      def check_header(path, bytes)
        return if bytes.start_with?(HEADER)
        raise Error, "#{path} is cut off; take it again" if HEADER.start_with?(bytes)
        raise Error, "#{path} is no snapshot; `culet snapshot PID` writes one" unless bytes.start_with?(NAME)

        version = bytes.byteslice(NAME.bytesize, 20)[/\A\S*/]
        raise Error, "#{path} was written by another version of culet (snapshot format #{version.inspect}, this one reads " \
                     "#{VERSION}); read it with that version"
      end
      private_class_method :check_header

      def members(path, bytes)
        found = []
        at = HEADER.bytesize
        while at < bytes.bytesize
          stream, length = inflate(bytes.byteslice(at..))
          found << stream
          at += length
        end
        found
      rescue Zlib::BufError
        raise Error, "#{path} is cut off#{" behind its first #{found.size} snapshots" if found.any?}; take it again"
      rescue Zlib::Error
        raise Error, "#{path} is damaged: it cannot be unpacked; take it again"
      end
      private_class_method :members

      def inflate(bytes)
        zlib = Zlib::Inflate.new(GZIP)
        stream = zlib.inflate(bytes)
        raise Zlib::BufError unless zlib.finished?

        [stream, zlib.total_in]
      ensure
        zlib&.reset # closing an unfinished one warns
        zlib&.close
      end
      private_class_method :inflate
    end
  end
end
