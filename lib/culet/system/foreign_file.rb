# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Reads a file that another process wrote or named, without trusting it: follows no link, waits for no pipe or device,
  # and limits the size.
  #
  # A file is found before it is opened: open(2) itself can wait (a FIFO, a lease) or act (a watchdog, a tape).
  #
  # @api private
  module ForeignFile
    # open(2)'s O_PATH: the file is found, not opened. The same number on x86-64 and aarch64.
    O_PATH = 0o10000000

    module_function

    # @param owners [Array<Integer>, nil] user numbers, one of which the file must belong to; nil: any
    # @param follow [Boolean] as of `open`
    # @return [String] its content, in bytes
    # @raise [Culet::Error] when it is something else, or too large
    def read(path, owners: [Process.euid], most_bytes: 64 << 20, follow: false)
      open(path, owners: owners, follow: follow) do |file|
        raise Error, "#{path} is too large" if file.size > most_bytes

        content = file.read(most_bytes + 1).to_s
        content.bytesize <= most_bytes ? content : raise(Error, "#{path} is too large")
      end
    rescue SystemCallError => e
      raise Error, "cannot read #{path}: #{Error.reason(e)}"
    end

    # @param owners [Array<Integer>, nil] as of `read`
    # @param follow [Boolean] whether the path may end in a link, such as one of /proc/PID/fd
    # @yieldparam file [File] a regular file, in bytes
    # @return [Object] the block's value
    # @raise [Culet::Error] when it is no regular file, or another user's
    # @raise [SystemCallError] when it cannot be opened
    def open(path, owners: nil, follow: false, &block)
      find(path, follow: follow) do |found, stat|
        raise Error, "#{path} is a symbolic link" if stat.symlink?
        raise Error, "#{path} is not a file" unless stat.file?
        raise Error, "#{path} belongs to another user" unless owners.nil? || owners.include?(stat.uid)

        reopen(found, &block)
      end
    end

    # @param follow [Boolean] whether a link at its end is followed
    # @yieldparam found [File] for `reopen`
    # @yieldparam stat [File::Stat] of the same file
    # @return [Object] the block's value
    # @raise [SystemCallError] when there is none
    def find(path, follow:)
      File.open(path, O_PATH | (follow ? 0 : File::NOFOLLOW)) { |found| yield found, found.stat }
    end

    # @param found [File] a regular file or a pipe, of `find`
    # @yieldparam file [File] the same file, open for reading
    # @return [Object] the block's value
    # @raise [SystemCallError] when it cannot be opened
    def reopen(found, &block)
      File.open("/proc/self/fd/#{found.fileno}", File::RDONLY | File::NONBLOCK | File::NOCTTY | File::BINARY, &block)
    end
  end
end
