# frozen_string_literal: true

require "json"
require_relative "../../errors"
require_relative "../../system/atomic_file"
require_relative "../../version"

module Culet
  module Live
    # Writes a recording: a line with the version, then a frame per line, each by one write. A recorder that is killed
    # leaves a file that ends with a whole line, or with a part of one that the reader leaves out.
    class Recorder
      # Version of the format.
      FORMAT = 1

      # @return [Integer] frames written
      attr_reader :frames

      attr_reader :path

      # @param path [String] of a file that does not exist
      # @param subject [String] what is recorded, for the title of the page
      # @param every_seconds [Float] from one frame to the next
      # @raise [Culet::Error] when the file exists, or cannot be written
      def initialize(path, subject:, every_seconds:)
        @path = path
        @frames = 0
        # Titles of processes are the business of this user.
        @file = File.open(path, File::WRONLY | File::CREAT | File::EXCL | File::APPEND | File::BINARY, 0o600)
        head = { "culet_live" => FORMAT, "culet" => VERSION, "subject" => subject, "every_seconds" => every_seconds }
        @file.syswrite("#{JSON.generate(head)}\n")
      rescue Errno::EEXIST
        raise Error, "there is a file #{path} already; choose another name for the recording, or remove it"
      rescue SystemCallError => e
        raise AtomicFile.unwritable(path, e)
      end

      # @raise [Culet::Error]
      def add(frame)
        @file.syswrite("#{frame.text}\n")
        @frames += 1
      rescue SystemCallError => e
        raise AtomicFile.unwritable(path, e)
      end

      # @return [void]
      def close = @file.close
    end
  end
end
