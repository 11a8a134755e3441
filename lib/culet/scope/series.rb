# frozen_string_literal: true

require_relative "../errors"
require_relative "snapshot_file"

module Culet
  module Scope
    # Writes one or several snapshots into a file, which bears its name only once it is whole: until then it is beside it.
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

      # @param stream [String] what culet-scope wrote
      # @raise [Culet::Error] when there is no room for it; what was there before stays
      def add(stream)
        member = SnapshotFile.pack(stream)
        whole_bytes = @file.size unless device?
        @file.write(member)
        @count += 1
      rescue SystemCallError => e
        @file.truncate(whole_bytes) unless device?
        raise unwritable(e)
      end

      private

      # A device or a pipe is written to as it is: it must not be replaced by a file.
      def device? = @device

      def start
        raise Error, "#{@path} is a directory; name a file" if File.directory?(@path)

        @device = File.exist?(@path) && !File.file?(@path)
        @target = File.exist?(@path) ? File.realpath(@path) : File.expand_path(@path)
        @beside = device? ? @target : "#{@target}.#{::Process.pid}.part"
        @file = File.open(@beside, device? ? File::WRONLY : File::WRONLY | File::CREAT | File::EXCL, SnapshotFile::MODE)
        @file.binmode
        @file.sync = true # so that what does not fit is known at once, and closing has nothing left to write
        @file.write(SnapshotFile::HEADER)
      rescue SystemCallError => e
        raise unwritable(e)
      end

      def finish
        return unless @file

        @file.close
        return if device?

        @count.positive? ? File.rename(@beside, @target) : File.unlink(@beside)
      rescue SystemCallError => e
        raise unwritable(e)
      end

      def unwritable(error) = Error.new("cannot write #{@path}: #{error.message.sub(/ @ .*/, "").downcase}")
    end
  end
end
