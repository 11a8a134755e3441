# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/atomic_file"

module Culet
  module Profile
    # A folder with the newest profiles, one file for each interval, named by the time of its end.
    class Rotation
      NAME = /\Aculet-profile-\d{8}T\d{6}Z\.pb\.gz\z/
      TIME = "culet-profile-%Y%m%dT%H%M%SZ.pb.gz"
      private_constant :NAME, :TIME

      # @return [Integer] files written
      attr_reader :written

      # @param folder [String] made if it does not exist
      # @param keep [Integer] files that stay
      # @raise [Culet::Error] when nothing can be written there
      def initialize(folder, keep:)
        @folder = folder
        @keep = keep
        @written = 0
        prepare
      end

      # @return [Hash{String => Object}] the folder and the number of files, for JSON
      def to_h = { "folder" => @folder, "written" => written }

      # Writes a file, then removes the oldest ones.
      #
      # @param content [String] a pprof file
      # @param _from [Time]
      # @param to [Time]
      # @raise [Culet::Error] when it cannot be written
      def write(content, _from, to)
        AtomicFile.write(File.join(@folder, to.getutc.strftime(TIME)), content)
        @written += 1
        remove_oldest
      end

      # Nothing is left to do at the end.
      def close = nil

      private

      def prepare
        Dir.mkdir(@folder) unless File.directory?(@folder)
        AtomicFile.check(File.join(@folder, Time.now.getutc.strftime(TIME)))
      rescue SystemCallError => e
        raise Error, "cannot make the directory #{@folder}: #{Error.reason(e)}"
      end

      def remove_oldest
        names = Dir.children(@folder, encoding: Encoding::BINARY).grep(NAME).sort
        names[0...-@keep].to_a.each { |name| remove(File.join(@folder, name)) }
      rescue SystemCallError => e
        raise Error, "cannot remove old profiles in #{@folder}: #{Error.reason(e)}"
      end

      def remove(path)
        File.unlink(path)
      rescue Errno::ENOENT
        nil # another culet that writes there has removed it
      end
    end
  end
end
