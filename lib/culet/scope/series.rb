# frozen_string_literal: true

require_relative "../system/atomic_file"
require_relative "../errors"
require_relative "snapshot_file"

module Culet
  module Scope
    # Writes one or several snapshots into a file, which bears its name only once it is whole: until then it is beside
    # it.
    class Series
      # @return [Integer] how many are in it
      attr_reader :count

      # @param path [String] the file that becomes of it
      def initialize(path)
        @path = path
        @count = 0
      end

      # Opens the file, yields, and gives it its name if there is anything in it; also when the block was left early.
      #
      # @yieldparam series [Series]
      # @return [Object] what the block returns
      # @raise [Culet::Error] when it cannot be written; nothing is left behind then
      def write
        start
        yield self
      ensure
        finish
      end

      # @param stream [String] the output of culet-scope
      # @raise [Culet::Error] when there is no room for it; what was there before stays
      def add(stream)
        member = SnapshotFile.pack(stream)
        whole_bytes = @draft.io.size if @draft.file?
        @draft.io.write(member)
        @count += 1
      rescue SystemCallError => e
        @draft.io.truncate(whole_bytes) if @draft.file?
        raise AtomicFile.unwritable(@path, e)
      end

      private

      # What does not fit is known at once, and closing has nothing left to write.
      def start
        raise Error, "#{@path} is a directory; give a file" if File.directory?(@path)

        @draft = AtomicFile.start(@path, secret: true)
        @draft.io.sync = true
        @draft.io.write(SnapshotFile::HEADER)
      rescue SystemCallError => e
        raise AtomicFile.unwritable(@path, e)
      end

      def finish
        return unless @draft

        @count.positive? ? @draft.commit : @draft.discard
      rescue SystemCallError => e
        raise AtomicFile.unwritable(@path, e)
      end
    end
  end
end
