# frozen_string_literal: true

require "digest"

module Packaging
  # SHA256SUMS: the checksums of the files of a release, as sha256sum reads them.
  module Checksums
    NAME = "SHA256SUMS"

    module_function

    # @param files [Array<String>] paths in one folder
    # @return [String] path of the list beside them
    def write(files)
      list = File.join(File.dirname(files.first), NAME)
      lines = files.sort_by { |file| File.basename(file) }.map { |file| "#{Digest::SHA256.file(file).hexdigest}  #{File.basename(file)}\n" }
      File.write(list, lines.join)
      list
    end
  end
end
