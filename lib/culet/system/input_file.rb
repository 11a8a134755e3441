# frozen_string_literal: true

require_relative "../errors"
require_relative "foreign_file"

module Culet
  # Opens the files that the user names: regular files, and, where the reader takes them, pipes (/dev/stdin, a shell's
  # <(COMMAND)). Links are followed. Nothing else is opened: a device may wait, never end, or act on an open.
  #
  # A pipe that no process has open for writing is refused at once instead of waited for. One that has a writer is read
  # until its end.
  #
  # @api private
  module InputFile
    module_function

    # @param what [String] what the file should be, for messages: "a snapshot"
    # @param pipe [Boolean] whether a pipe will do
    # @yieldparam file [File] at its start, in bytes
    # @return [Object] the block's value
    # @raise [Culet::Error] when there is no such file, or it is of another kind, or cannot be read
    def open(path, what:, pipe: false, &block)
      ForeignFile.find(path, follow: true) do |found, stat|
        raise Error, "#{path} is #{kind(stat)}; give #{what}" unless stat.file? || (pipe && stat.pipe?)

        ForeignFile.reopen(found) do |file|
          check_writer(file, path) if stat.pipe?
          block.call(file)
        end
      end
    rescue Errno::ENOENT, Errno::ENOTDIR
      raise Error, "there is no file #{path}; give #{what}"
    rescue SystemCallError => e
      raise Error, "cannot read #{path}: #{Error.reason(e)}"
    end

    # @param what [String] as of `open`
    # @param most_bytes [Integer] limit of its size
    # @return [String] its content, in bytes
    # @raise [Culet::Error] as `open`, and when it is larger
    def read(path, what:, most_bytes:)
      open(path, what: what, pipe: true) do |file|
        # By its size first: a sparse file takes no disk, but memory once it is read.
        content = file.read(most_bytes + 1).to_s unless file.size > most_bytes
        next content if content && content.bytesize <= most_bytes

        raise Error, "#{path} is too large for #{what}: the limit is #{most_bytes / 1_000_000} MB"
      end
    end

    def kind(stat)
      case stat.ftype
      when "directory" then "a directory"
      when "fifo" then "a pipe"
      when "socket" then "a socket"
      else "a device"
      end
    end

    # Without a writer, a read finds the end of the pipe; before the first byte of a writer, it would block.
    def check_writer(file, path)
      first = file.read_nonblock(1, exception: false)
      raise Error, "nothing can be read from the pipe #{path}: no process writes to it" if first.nil?

      file.ungetbyte(first) if first.is_a?(String)
    end

    private_class_method :kind, :check_writer
  end
end
