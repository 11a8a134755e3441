# frozen_string_literal: true

require "tempfile"

module Culet
  module Compare
    # The error output of a measured process, in a file without a name, and the one
    # line of it that says why the process failed.
    class ErrorOutput
      # A crash of Ruby says what it is at the beginning of a long dump, all others at the end.
      HEAD_BYTES = 65_536
      TAIL_BYTES = 4_096
      CHARACTERS = 200
      private_constant :HEAD_BYTES, :TAIL_BYTES, :CHARACTERS

      # What a crashed Ruby, and the allocator when it stops a misuse, begin with.
      VERDICT = /\[BUG\]|\Aculet: /
      EXCEPTION = /\((?:[A-Z]\w*::)*[A-Z]\w*\)\z/
      TRACE = /\A(?:from |\.{3}|\d+: from)/
      private_constant :VERDICT, :EXCEPTION, :TRACE

      # @return [File] to be given to the process
      attr_reader :file

      def initialize
        @file = Tempfile.create("culet-errors")
        File.unlink(@file.path)
      end

      # Closes the file; its last words stay known.
      def close
        return if closed?

        @last_words = last_words
        file.close
      end

      # @return [Boolean]
      def closed? = file.closed?

      # @return [String, nil] one line of at most 200 characters; nil when there is none
      def last_words
        return @last_words if closed?

        tail = lines(TAIL_BYTES, [file.size - TAIL_BYTES, 0].max)
        found = lines(HEAD_BYTES, 0).grep(VERDICT).first || tail.grep(EXCEPTION).last || tail.grep_v(TRACE).last
        found&.slice(0, CHARACTERS)
      end

      private

      # By pread, which leaves the position alone that the process shares.
      def lines(bytes, offset)
        return [] if file.size.zero?

        text = file.pread([bytes, file.size - offset].min, offset)
        text.force_encoding(Encoding::UTF_8).scrub("?").lines.map(&:strip).reject(&:empty?)
      end
    end
  end
end
