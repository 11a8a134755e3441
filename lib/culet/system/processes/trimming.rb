# frozen_string_literal: true

module Culet
  module Processes
    # Whether `culet/auto` is at work in a process, seen from outside: it leaves a mapping without memory in the
    # process, whose name has the mode (ext/culet/trim/trim.c).
    module Trimming
      MARK = %r{/memfd:culet-trim:(\w+)}
      private_constant :MARK

      module_function

      # @param pid [Integer]
      # @return [String, nil] "background" or "now", as in CULET_TRIM; nil where it is not at work, or the process has
      #   ended or may not be read
      def mode(pid)
        in_maps(File.read("/proc/#{LivingThread.of(pid)}/maps"))
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      # @param maps [String] /proc/PID/maps, or one mapping's name
      # @return [String, nil] as of `mode`
      def in_maps(maps) = maps[MARK, 1]
    end
  end
end
