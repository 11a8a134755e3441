# frozen_string_literal: true

require "open3"
require "time"

module Packaging
  # The time that a package says it was made at: the same for the same sources.
  module Timestamp
    module_function

    # @return [Integer] SOURCE_DATE_EPOCH, or else the time of the last commit, or else of the changelog
    def seconds
      given = ENV["SOURCE_DATE_EPOCH"].to_s
      return Integer(given, 10) unless given.empty?

      root = File.expand_path("..", __dir__)
      out, _, status = Open3.capture3("git", "-C", root, "log", "-1", "--format=%ct")
      status.success? ? Integer(out, 10) : File.mtime(File.join(root, "CHANGELOG.md")).to_i
    rescue Errno::ENOENT
      File.mtime(File.join(root, "CHANGELOG.md")).to_i
    end
  end
end
