# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Reads a file that another process wrote, without trusting it: follows no link, waits for no pipe or device, and
  # limits the size.
  #
  # @api private
  module ForeignFile
    module_function

    # @param path [String]
    # @param owners [Array<Integer>] user numbers, one of which the file must belong to
    # @param most_bytes [Integer]
    # @return [String] its content, in bytes
    # @raise [Culet::Error] when it is something else, or too large
    def read(path, owners: [Process.euid], most_bytes: 64 << 20)
      File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY | File::BINARY) do |file|
        stat = file.stat
        raise Error, "#{path} is not a file" unless stat.file?
        raise Error, "#{path} belongs to another user" unless owners.include?(stat.uid)

        content = file.read(most_bytes + 1).to_s
        content.bytesize <= most_bytes ? content : raise(Error, "#{path} is too large")
      end
    rescue Errno::ELOOP
      raise Error, "#{path} is a symbolic link"
    rescue SystemCallError => e
      raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
    end
  end
end
