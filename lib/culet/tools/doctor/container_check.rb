# frozen_string_literal: true

require_relative "../../system/memory_group"
require_relative "../../text/size"
require_relative "finding"

module Culet
  class Doctor
    # The limits of the control groups of the process (cgroups(7)), versions 2 and 1. Any group up to the root may have
    # a limit; the smallest counts.
    class ContainerCheck < Check
      ROOT = "/sys/fs/cgroup"
      # Above this share of the limit, the next peak may trigger the out-of-memory killer.
      TIGHT = 0.9
      # Version 1 writes the largest page-aligned number for "no limit".
      UNLIMITED_BYTES = 1 << 60

      # @return [Array<Finding>]
      def findings = [memory, cpu]

      private

      def memory
        group = memory_groups.min_by(&:limit_bytes)
        return unseen("memory limit", "memory", "memory") unless group || seen?("memory")
        return ok("memory limit", "the container has no memory limit") unless group

        limit = group.limit_bytes
        used = group.used_bytes
        unless used
          return unknown("memory limit", "the container may use #{Text::Size.limit(limit)}; its usage",
                         "#{group.usage_file} cannot be read")
        end

        text = "the container may use #{Text::Size.limit(limit)} and uses #{Text::Size.limit(used, limit)}"
        return ok("memory limit", text) if used < TIGHT * limit

        bad("memory limit", "#{text}; at the limit, the kernel kills a process",
            "Raise the limit, run fewer workers or threads, or use less memory, e.g. with `culet run -- COMMAND`.")
      end

      # @return [Array<MemoryGroup>] those that have a limit; what counts as used is that of `culet limit`
      def memory_groups
        { "" => 2, "memory" => 1 }.flat_map do |controller, version|
          directories(controller).filter_map { |directory| limited(MemoryGroup.new(directory, version, nil)) }
        end
      end

      def limited(group)
        bytes = content(group.limit_file)
        return unless bytes&.match?(/\A\d+\z/) && bytes.to_i < UNLIMITED_BYTES

        MemoryGroup.new(group.folder, group.version, bytes.to_i)
      end

      def cpu
        cores = cpu_limits.min
        return unseen("cpu limit", "CPU time", "cpu") unless cores || seen?("cpu")
        return ok("cpu limit", "the container has no CPU limit, #{target.cores} cores") unless cores

        text = format("the container may use %<share>.4g of %<cores>d cores", share: cores, cores: target.cores)
        return ok("cpu limit", text) unless cores < target.cores && target.allocator == "glibc"

        note("cpu limit", "#{text}; glibc computes its arenas from #{target.cores} cores", "Set MALLOC_ARENA_MAX=2.")
      end

      def cpu_limits
        new_style = directories("").filter_map { |directory| content(File.join(directory, "cpu.max"))&.split }
        old_style = directories("cpu").map do |directory|
          %w[cpu.cfs_quota_us cpu.cfs_period_us].map { |file| content(File.join(directory, file)) }
        end
        (new_style + old_style).filter_map do |quota, period|
          quota.to_f / period.to_f if quota&.match?(/\A\d+\z/) && period.to_i.positive?
        end
      end

      def unseen(topic, what, controller)
        unknown(topic, "limit on #{what}",
                "the control groups of the process (#{mount_point(hierarchy(controller))}) cannot be read")
      end

      # Whether a limit would be seen: without control groups there is none; else their file system must be mounted and
      # the files of each group readable.
      def seen?(controller)
        name = hierarchy(controller)
        return true if group(name).nil?
        return false if name.empty? && !File.exist?(File.join(mount_point(name), "cgroup.controllers"))

        found = directories(name)
        found.any? && found.all? { |directory| readable?(directory) }
      end

      LIMIT_FILES = %w[memory.max memory.limit_in_bytes cpu.max cpu.cfs_quota_us].freeze
      private_constant :LIMIT_FILES

      def readable?(directory)
        return false unless File.readable?(directory) && File.executable?(directory)

        LIMIT_FILES.map { |name| File.join(directory, name) }.all? { |path| !File.exist?(path) || File.readable?(path) }
      end

      # @return [String] the hierarchy of the controller: its own (version 1), or "" (version 2)
      def hierarchy(controller) = group(controller) ? controller : ""

      # The process's group of that controller ("" for version 2) and all above it. Inside a container the path may be
      # that of the host; then the root of the mount is the container's group.
      def directories(controller)
        path = group(controller) or return []
        mount = mount_point(controller)
        path = "/" if path.include?("..") || !Dir.exist?(File.join(mount, path))
        parts = path.split("/").reject(&:empty?)
        paths = (0..parts.size).map { |count| File.join(mount, *parts.first(count)) }
        paths.select { |directory| Dir.exist?(directory) }
      end

      def mount_point(controller)
        return File.join(ROOT, controller) unless controller.empty?

        File.exist?(File.join(ROOT, "cgroup.controllers")) ? ROOT : File.join(ROOT, "unified")
      end

      def group(controller)
        groups.each do |_number, names, path|
          return path if names.split(",").include?(controller) || (controller.empty? && names.empty?)
        end
        nil
      end

      def groups = @groups ||= target.live.read("cgroup").each_line.map { |line| line.chomp.split(":", 3) }
    end
  end
end
