# frozen_string_literal: true

require_relative "../../system/kernel_file"
require_relative "../../system/memory_group"

module Culet
  module Autopsy
    # The kernel's count of processes that it has killed in the control group of a black box's process.
    #
    # The box names the count's file, but anyone may have written the box: a file is read if the kernel lists a group of
    # that name, and never because the box names it.
    class Kills
      # @param root [String] the folder that has /proc and the mounted control groups
      def initialize(root: "/")
        @root = root
      end

      # @return [Integer, nil] nil: the group has ended with the process, or is that of another machine
      def of(box)
        return unless same_boot?(box)

        group = MemoryGroup.listed(box["group_kills"].to_s, root: @root) or return
        KernelFile.read(group.kills_file)[/^oom_kill (\d{1,18})$/, 1]&.to_i
      rescue SystemCallError
        nil
      end

      # @return [Boolean] whether its numbers of processes and groups are those of this start of the machine
      def same_boot?(box) = box["boot"].nil? || box["boot"] == KernelFile.content("/proc/sys/kernel/random/boot_id")
    end
  end
end
