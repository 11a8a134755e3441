# frozen_string_literal: true

require "open3"

module AllocatorBench
  # Builds the C probes.
  module Build
    # Not tracked by git.
    FOLDER = File.expand_path("../../tmp/bench", __dir__)

    # @param folder [String] where to put them
    # @return [String] the folder, absolute
    # @raise [Culet::Error] when they cannot be built
    def self.call(folder = FOLDER)
      folder = File.expand_path(folder)
      text, status = Open3.capture2e({ "MAKEFLAGS" => nil, "LD_PRELOAD" => nil }, "make", "-s", "-j2", "-C", __dir__, "BUILD=#{folder}")
      raise Culet::Error, "the probes cannot be built: #{text.lines.last(5).join(" ").strip}" unless status.success?

      folder
    rescue Errno::ENOENT
      raise Culet::Error, "there is no make: install make and gcc, e.g. `apt-get install make gcc libc6-dev`"
    end
  end
end
