# frozen_string_literal: true

require_relative "../../system/input_file"

module Culet
  module Trace
    # The header of a trace file (struct culet_trace_header of replay/format.h).
    class Header
      MAGIC = "culettrc"
      VERSION = 1
      BYTES = 4096
      LAYOUT = "a8 L4 Q5 L4 Z256 Z128 Z32 a3576 Q2 L2"
      COMMAND_BYTES = 3576
      # CULET_TRACE_CHUNK: the largest header block and stride.
      CHUNK_BYTES = 65_536
      # enum culet_trace_stop
      STOPS = [nil, "the disk was full", "the size limit was reached", "its file could no longer be written"].freeze

      attr_reader :path, :header_bytes, :stride, :lost, :pid, :parent_pid, :parent, :allocator, :machine, :command,
                  :started_at

      # @return [Boolean] whether the file is readable and starts like a trace
      def self.trace?(path)
        ForeignFile.open(path, follow: true) { |file| file.read(MAGIC.bytesize) } == MAGIC
      rescue SystemCallError, Error
        false
      end

      # @raise [Culet::Error] when it is not a trace, or truncated in its header
      def self.read(path)
        bytes = InputFile.open(path, what: "a trace") { |file| file.read(BYTES) }.to_s
        raise Error, "#{path} is empty; `culet trace -o FILE -- COMMAND` records a trace" if bytes.empty?
        unless bytes.start_with?(MAGIC.byteslice(0, bytes.bytesize))
          raise Error, "#{path} is not a culet trace; `culet trace -o FILE -- COMMAND` records one"
        end
        if bytes.bytesize < BYTES
          raise Error, "#{path} is truncated: it ends in the header; copy it again or record again"
        end

        new(path, bytes)
      end

      # @param bytes [String] the first 4,096 of the file
      def initialize(path, bytes)
        @path = path
        _, version, @header_bytes, @stride, _, _, _, started_ns, _, @lost, @pid, @parent_pid,
          stopped, command_bytes, @parent, @allocator, @machine, command, _, _, @execs = bytes.unpack(LAYOUT)
        raise Error, "#{path} was recorded by a newer culet (format #{version}); use that version" if version > VERSION

        check(version, command_bytes)
        @started_at = Time.at(0, started_ns, :nanosecond)
        @stopped = stopped
        @parent, @allocator, @machine = [@parent, @allocator, @machine].map { |word| text(word) }
        @command = command.byteslice(0, command_bytes).split("\0").map { |word| text(word) }
      end

      # @return [String, nil] why the recording ended before the program did
      def stopped = STOPS.fetch(@stopped, "for a reason unknown to this version of culet")

      # @return [Integer] programs that the process executed one after the other; the last one is replayed
      def programs = @execs + 1

      # @return [Hash] for --json
      def to_h
        { "file" => path, "file_bytes" => File.size(path), "pid" => pid, "parent_pid" => parent_pid,
          "command" => command, "programs" => programs, "allocator" => allocator, "machine" => machine,
          "started_at" => started_at.utc.strftime("%FT%TZ"), "lost" => lost,
          "stopped" => stopped }
      end

      private

      def check(version, command_bytes)
        return if version.positive? && header_bytes.between?(BYTES, CHUNK_BYTES) &&
                  stride.between?(1, CHUNK_BYTES) && command_bytes <= COMMAND_BYTES

        raise Error, "#{path} is damaged: its header is invalid; record again"
      end

      # Names are bytes; those of a file may be any.
      def text(bytes) = bytes.dup.force_encoding(Encoding::UTF_8).scrub("?")
    end
  end
end
