# frozen_string_literal: true

module Culet
  module Processes
    # Marks of culet in a process, visible from outside: mappings without memory,
    # whose names describe the state (ext/culet/common/mark.h). Forked processes inherit them.
    module Marks
      TRIMMING = %r{/memfd:culet-trim:(\w+)}
      # Culet.warmup has run.
      WARMUP = "/memfd:culet-warmup"
      # culet/profile is loaded, so that `culet profile PID` works.
      PROFILE = "/memfd:culet-profile"
      # The file of its black box, which it has open; it may have been removed.
      BLACK_BOX = %r{/culet-\d+-\h+\.blackbox(?: \(deleted\))?\z}
      private_constant :TRIMMING, :BLACK_BOX

      module_function

      # @return [Boolean] whether it has loaded culet/profile; false where it has ended or may not be read
      def profile?(pid)
        File.read("/proc/#{LivingThread.of(pid)}/maps").include?(PROFILE)
      rescue *GONE_OR_FORBIDDEN
        false
      end

      # @return [String, nil] the kernel's link to the file of its black box, whose path may be one of another mount
      #   namespace; nil where it has none, has ended or may not be read
      def black_box(pid)
        folder = "/proc/#{LivingThread.of(pid)}/fd"
        Dir.children(folder).map { |name| "#{folder}/#{name}" }.find { |link| target(link)&.match?(BLACK_BOX) }
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      # @param link [String] of a file descriptor
      # @return [String, nil] nil: it was closed meanwhile
      def target(link)
        File.readlink(link).scrub("?")
      rescue Errno::ENOENT
        nil
      end
      private_class_method :target

      # @param maps [String] /proc/PID/maps, or one mapping's name
      # @return [String, nil] how `culet/auto` trims: "background" or "now", as in CULET_TRIM; nil: not at all
      def trimming_in(maps) = maps[TRIMMING, 1]
    end
  end
end
