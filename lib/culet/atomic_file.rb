# frozen_string_literal: true

require_relative "errors"

module Culet
  # Writes a file whole or not at all.
  module AtomicFile
    module_function

    # A device, a pipe or a terminal is written to as it is: it must not be replaced by a file. A symbolic link
    # stays, and what it points to is replaced.
    #
    # @param path [String] the destination
    # @param content [String] bytes to write
    # @raise [Culet::Error] when it cannot be written; nothing is left behind
    def write(path, content)
      return File.binwrite(path, content, mode: File::WRONLY) if special?(path)

      replace(File.exist?(path) ? File.realpath(path) : path, content)
    rescue SystemCallError => e
      raise Error, "cannot write #{path}: #{e.message.sub(/ @ .*/, "")}"
    end

    # Says beforehand what would keep `write` from succeeding, where that can be known.
    #
    # @param path [String] the destination
    # @raise [Culet::Error]
    def check(path)
      return if special?(path)

      directory = File.dirname(path)
      raise Error, "#{path} is a directory; name a file" if File.directory?(path)
      raise Error, "cannot write #{path}: there is no directory #{directory}" unless File.directory?(directory)
      raise Error, "cannot write #{path}: the directory #{directory} may not be written to" unless File.writable?(directory)
    end

    def special?(path) = File.exist?(path) && !File.file?(path) && !File.directory?(path)
    private_class_method :special?

    def replace(path, content)
      beside = "#{path}.#{Process.pid}.part"
      File.binwrite(beside, content)
      File.rename(beside, path)
    ensure
      File.unlink(beside) if File.exist?(beside)
    end
    private_class_method :replace
  end
end
