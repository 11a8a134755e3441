# frozen_string_literal: true

require "tempfile"
require_relative "../../errors"

module Culet
  module Strings
    # The temporary file between reading and analysis, with a record for each String (ext/culet/strings/record.h): the
    # records can be as large as the strings, so they are not kept in memory. The file is unlinked, so that no other
    # process truncates it while it is mapped, and it disappears with this process.
    class RecordFile
      # Creates a file for the block.
      #
      # @yieldparam record_file [RecordFile]
      # @return the block's value
      # @raise [Culet::Error] when the directory for temporary files is full
      def self.open
        file = Tempfile.create("culet-strings", binmode: true)
        File.unlink(file.path)
        yield new(file)
      rescue Errno::ENOSPC, Errno::EDQUOT
        raise Error, "#{Dir.tmpdir} is full; set TMPDIR to a directory with room for about the size of the strings"
      ensure
        file&.close
      end

      # @return [File]
      attr_reader :io

      def initialize(file)
        @io = file
      end

      # @return [String] a path that this process can open
      def path = "/proc/self/fd/#{descriptor}"

      # @return [Integer] the descriptor, for native writers
      def descriptor = io.fileno

      # Takes the end off the file.
      #
      # @return [String] the end; the whole content of a smaller file
      def cut(bytes)
        io.flush
        size = io.size
        found = io.pread([bytes, size].min, [size - bytes, 0].max) unless size.zero?
        io.truncate([size - bytes, 0].max)
        found.to_s
      end
    end
  end
end
