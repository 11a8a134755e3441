# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Reads a file that another process wrote. Nothing of it is trusted: no link is followed, no pipe or device is waited for,
  # and no more is read than was asked for.
  module ForeignFile
    module_function

    # @param path [String]
    # @param owners [Array<Integer>] user numbers, one of which the file must belong to
    # @param most_bytes [Integer]
    # @return [String] its content, in bytes
    # @raise [Culet::Error] when it is something else
    def read(path, owners: [Process.euid], most_bytes: 64 << 20)
      File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY | File::BINARY) do |file|
        stat = file.stat
        raise Error, "#{path} is not a file" unless stat.file?
        raise Error, "#{path} belongs to somebody else" unless owners.include?(stat.uid)

        content = file.read(most_bytes + 1).to_s
        content.bytesize <= most_bytes ? content : raise(Error, "#{path} is too large to be what it should be")
      end
    rescue Errno::ELOOP
      raise Error, "#{path} is a symbolic link"
    rescue SystemCallError => e
      raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
    end
  end
end
