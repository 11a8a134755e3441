# frozen_string_literal: true

require "open3"

module Bench
  # Builds the C probes.
  module Build
    # Where they are put unless told otherwise: a folder that is no part of the project's files.
    FOLDER = File.expand_path("../tmp/bench", ROOT)

    # @param folder [String] where to put them
    # @return [String] the folder, absolute
    # @raise [Culet::Error] when the compiler refuses
    def self.call(folder = FOLDER)
      folder = File.expand_path(folder)
      text, status = Open3.capture2e({ "MAKEFLAGS" => nil, "LD_PRELOAD" => nil }, "make", "-s", "-j2", "-C", ROOT, "BUILD=#{folder}")
      raise Culet::Error, "the probes do not build: #{text.lines.last(5).join(" ").strip}" unless status.success?

      folder
    rescue Errno::ENOENT
      raise Culet::Error, "there is no make: install make and gcc, e.g. `apt-get install make gcc libc6-dev`"
    end
  end
end
