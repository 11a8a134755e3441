# frozen_string_literal: true

require_relative "errors"

module Culet
  # Writes a file whole or not at all.
  module AtomicFile
    module_function

    # @param path [String] the destination
    # @param content [String] bytes to write
    # @raise [Culet::Error] when it cannot be written; nothing is left behind
    def write(path, content)
      beside = "#{path}.#{Process.pid}.part"
      File.binwrite(beside, content)
      File.rename(beside, path)
    rescue SystemCallError => e
      raise Error, "cannot write #{path}: #{e.message.sub(/ @ .*/, "")}"
    ensure
      File.unlink(beside) if beside && File.exist?(beside)
    end
  end
end
