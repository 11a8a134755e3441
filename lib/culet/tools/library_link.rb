# frozen_string_literal: true

require "fileutils"
require_relative "../errors"

module Culet
  # A link to the allocator whose path can stand in a Dockerfile or a unit file: the gem's own path names its version,
  # and with a platform gem the processor.
  #
  # @api private
  class LibraryLink
    # @param path [String] of the link; a folder: libculet.so in it
    # @raise [UsageError] for a path that the loader cannot take from LD_PRELOAD
    def initialize(path)
      @path = File.expand_path(File.directory?(path) ? File.join(path, "libculet.so") : path)
      return unless @path.b.match?(/[\s:]/)

      raise UsageError, "#{@path} has a space or a colon, which end a name in LD_PRELOAD; choose another path"
    end

    # Makes the link, in place of an earlier one. Programs that have the library loaded keep it.
    #
    # @param library [String] path of libculet.so
    # @return [String] path of the link
    # @raise [Culet::Error] when something else is there, or the folder cannot be written
    def make(library)
      return @path if @path == library
      raise Error, "#{@path} is not a link; remove it, or choose another path" if taken?

      FileUtils.mkdir_p(File.dirname(@path))
      # Under its name at once, so that no program starts without it.
      part = "#{@path}.#{Process.pid}.part"
      File.symlink(library, part)
      File.rename(part, @path)
      @path
    rescue SystemCallError => e
      FileUtils.rm_f(part) if part
      raise Error, "cannot make the link #{@path}: #{Error.reason(e)}; " \
                   "choose a folder that you may write"
    end

    private

    def taken? = File.exist?(@path) && !File.symlink?(@path)
  end
end
