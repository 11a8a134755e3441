# frozen_string_literal: true

require "open3"

module Bench
  # Builds the C programs of a benchmark.
  module Build
    # Not tracked by git.
    DEFAULT = File.join(ROOT, "tmp/bench")

    # @param folder [String] in bench/
    # @param into [String] a directory
    # @return [String] the directory, absolute
    def self.call(folder, into)
      into = File.expand_path(into)
      text, status = Open3.capture2e({ "MAKEFLAGS" => nil, "LD_PRELOAD" => nil },
                                     "make", "-s", "-j2", "-C", __dir__, "FOLDER=#{folder}", "BUILD=#{into}")
      return into if status.success?

      raise Culet::Error, "bench/#{folder} cannot be built: #{text.lines.last(5).join(" ").strip}"
    rescue Errno::ENOENT
      raise Culet::Error, "there is no make: install make and gcc, e.g. `apt-get install make gcc libc6-dev`"
    end
  end
end
