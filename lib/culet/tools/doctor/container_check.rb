# frozen_string_literal: true

require_relative "../../system/control_groups"
require_relative "../../system/memory_group"
require_relative "../../text/size"
require_relative "finding"

module Culet
  class Doctor
    # The limits of the control groups of the process (cgroups(7)), versions 2 and 1. Any group up to the root may have
    # limits: of memory, the one that leaves least counts, and of processor time the smallest.
    class ContainerCheck < Check
      # @return [Array<Finding>]
      def findings = [memory, cpu]

      private

      def memory
        group, = MemoryGroup.tightest(target.live.pid)
        return unseen("memory limit", "memory") unless group || seen?("memory")
        return ok("memory limit", "the container has no memory limit") unless group

        limit = group.limit_bytes
        used = group.used_bytes
        unless used
          return unknown("memory limit", "the container may use #{Text::Size.limit(limit)}; its usage",
                         "#{group.usage_file} cannot be read")
        end

        text = "the container may use #{Text::Size.limit(limit)} and uses #{Text::Size.limit(used, limit)}"
        return ok("memory limit", text) unless Thresholds.close_to_limit?(used, limit)

        bad("memory limit", "#{text}; at the limit, the kernel slows processes down or kills one",
            "Raise the limit, or see what to change: `culet explain #{subject}`.")
      end

      def cpu
        cores = cpu_limits.min
        return unseen("cpu limit", "CPU time") unless cores || seen?("cpu")
        return ok("cpu limit", "the container has no CPU limit, #{target.cores} cores") unless cores

        text = format("the container may use %<share>.4g of %<cores>d cores", share: cores, cores: target.cores)
        remedy = advice("arenas") if cores < target.cores
        return ok("cpu limit", text) unless remedy

        note("cpu limit", "#{text}; glibc computes its arenas from #{target.cores} cores", remedy)
      end

      def cpu_limits
        folders("cpu").filter_map do |folder, version|
          names = version == 2 ? %w[cpu.max] : %w[cpu.cfs_quota_us cpu.cfs_period_us]
          quota, period = names.flat_map { |name| content(File.join(folder, name)).to_s.split }
          quota.to_f / period.to_f if quota&.match?(/\A\d+\z/) && period.to_i.positive?
        end
      end

      def unseen(topic, what)
        unknown(topic, "limit on #{what}", "the control groups of the process (/proc/#{target.live.pid}/cgroup, " \
                                           "/proc/self/mountinfo) cannot be read")
      end

      # Whether a limit would be seen: without control groups there is none; else their file system must be mounted and
      # the files of each group readable.
      def seen?(controller)
        return true if ControlGroups.membership(controller, pid: target.live.pid).nil?

        found = folders(controller)
        found.any? && found.all? { |folder, _| readable?(folder) }
      rescue SystemCallError
        false
      end

      LIMIT_FILES = %w[memory.max memory.limit_in_bytes cpu.max cpu.cfs_quota_us].freeze
      # Every group has it.
      MEMBERS = "cgroup.procs"
      private_constant :LIMIT_FILES, :MEMBERS

      def readable?(folder)
        return false unless File.executable?(folder) && File.exist?(File.join(folder, MEMBERS))

        LIMIT_FILES.map { |name| File.join(folder, name) }.all? { |path| !File.exist?(path) || File.readable?(path) }
      end

      # @return [Array<Array(String, Integer)>] of the process's group of that controller and all above it
      def folders(controller)
        ControlGroups.folders(controller, pid: target.live.pid)
      rescue SystemCallError
        []
      end
    end
  end
end
