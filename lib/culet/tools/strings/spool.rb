# frozen_string_literal: true

require "tempfile"
require_relative "../../errors"

module Culet
  module Strings
    # The file between reading and analysis: one record for each String (ext/culet/strings/record.h). It can be about as
    # large as the strings; so memory need not be. It has no name: nobody can cut it off while it is mapped, and it goes
    # with this process, however that ends.
    class Spool
      # Makes one, yields it, and removes it.
      #
      # @yieldparam spool [Spool]
      # @return the block's value
      # @raise [Culet::Error] when the directory for temporary files takes no more
      def self.open
        file = Tempfile.create("culet-strings", binmode: true)
        File.unlink(file.path)
        yield new(file)
      rescue Errno::ENOSPC, Errno::EDQUOT
        raise Error, "#{Dir.tmpdir} is full; name a directory with room for about the size of the strings: TMPDIR=DIRECTORY"
      ensure
        file&.close
      end

      # @param file [File]
      def initialize(file)
        @file = file
      end

      # @return [String] by which this process can open it
      def path = "/proc/self/fd/#{descriptor}"

      # @return [Integer] its descriptor, for who writes records by himself
      def descriptor = @file.fileno

      # @param records [String] written as they are
      # @return [void]
      def write(records)
        @file.write(records)
        @file.flush
      end
    end
  end
end
