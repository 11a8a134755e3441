# frozen_string_literal: true

require "tempfile"

module Culet
  module Compare
    # The error output of a measured process, in an unlinked file, and the line of it that explains a failure.
    class ErrorOutput
      # Ruby's crash report starts with its reason; other programs print theirs last.
      HEAD_BYTES = 65_536
      TAIL_BYTES = 4_096
      CHARACTERS = 200
      private_constant :HEAD_BYTES, :TAIL_BYTES, :CHARACTERS

      # A crash of Ruby, and a misuse that the allocator stopped.
      CRASH = /\[BUG\]|\Aculet: /
      EXCEPTION = /\((?:[A-Z]\w*::)*[A-Z]\w*\)\z/
      TRACE = /\A(?:from |\.{3}|\d+: from)/
      private_constant :CRASH, :EXCEPTION, :TRACE

      # @return [File] for the process
      attr_reader :file

      def initialize
        @file = Tempfile.create("culet-errors")
        File.unlink(@file.path)
      end

      # Closes the file; the diagnostic is kept.
      def close
        return if closed?

        @diagnostic = diagnostic
        file.close
      end

      # @return [Boolean]
      def closed? = file.closed?

      # @param path [String] the file to copy it to
      def save(path) = IO.copy_stream(file, path, nil, 0)

      # @return [String, nil] one line of at most 200 characters; nil when there is none
      def diagnostic
        return @diagnostic if closed?

        tail = lines(TAIL_BYTES, [file.size - TAIL_BYTES, 0].max)
        found = lines(HEAD_BYTES, 0).grep(CRASH).first || tail.grep(EXCEPTION).last || tail.grep_v(TRACE).last
        found&.slice(0, CHARACTERS)
      end

      private

      # pread does not move the file position, which the process shares.
      def lines(bytes, offset)
        return [] if file.size.zero? # rubocop:disable Style/ZeroLengthPredicate

        text = file.pread([bytes, file.size - offset].min, offset)
        text.force_encoding(Encoding::UTF_8).scrub("?").lines.map(&:strip).reject(&:empty?)
      end
    end
  end
end
