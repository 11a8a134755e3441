# frozen_string_literal: true

require_relative "control_groups"
require_relative "kernel_file"

module Culet
  # A control group of versions 1 or 2 with a memory limit (cgroups(7)).
  #
  # What counts is what the kernel's OOM killer counts: the charged bytes less page cache that no process maps and the
  # kernel's own caches, which it reclaims before it kills.
  #
  # @api private
  class MemoryGroup
    # Version 1 writes the largest page-aligned number for "no limit".
    UNLIMITED_BYTES = 1 << 60
    FILES = { 1 => { limits: %w[memory.limit_in_bytes], usage: "memory.usage_in_bytes",
                     kills: "memory.oom_control", pressure: nil },
              2 => { limits: %w[memory.max memory.high], usage: "memory.current",
                     kills: "memory.events", pressure: "memory.pressure" } }.freeze
    private_constant :UNLIMITED_BYTES, :FILES

    class << self
      # @param pid [Integer, String] a process number, or "self"
      # @param root [String] the folder that has /proc and the mounted control groups
      # @return [Array(MemoryGroup, Array<String>)] the group of the process or above it that has the least headroom, or
      #   nil; and a sentence for each file that could not be used
      def tightest(pid = "self", root: "/")
        problems = []
        groups = folders(pid, root, problems).filter_map { |folder, version| read(folder, version, problems) }
        [groups.min_by { |group| group.limit_bytes - (group.used_bytes || 0) }, problems]
      end

      # @param pid [Integer, String] a process number, or "self"
      # @param root [String] as above
      # @return [Array(MemoryGroup, Array<String>)] the group of the process itself, with a limit or without, or nil if
      #   it is in none that counts memory; and sentences as above
      def own(pid = "self", root: "/")
        problems = []
        groups = folders(pid, root, problems).map { |folder, version| new(folder, version, nil) }
        found = groups.find { |group| File.readable?(group.usage_file) }
        [found && (read(found.folder, found.version, problems) || found), problems]
      end

      # What a black box reads: of the tightest group, or of the process's own if there is no limit. Kills are those
      # that its own group counts: version 1 counts them nowhere else.
      #
      # @param root [String] as above
      # @return [Array<String, nil>] the files of use, limit, statistics and kills; all nil if the process is in no
      #   group that counts memory
      def files(root: "/")
        own, = own(root: root)
        return Array.new(4) unless own

        group = tightest(root: root).first || own
        [group.usage_file, group.limit_file, group.stat_file, own.kills_file]
      end

      # Finds a group by the name of its count of kills, which anyone may have written: each part of the path is looked
      # for among those that the kernel lists, below a mounted hierarchy.
      #
      # @param path [String] as of `kills_file`
      # @param root [String] as above
      # @return [MemoryGroup, nil] the group, without its limit; nil: there is none
      def listed(path, root: "/")
        ControlGroups.mounts("memory", root: root).each do |version, _, mount_point|
          folder = File.join(root, mount_point)
          next unless path.start_with?("#{folder.chomp("/")}/")

          *parts, name = path.delete_prefix("#{folder.chomp("/")}/").split("/", -1)
          found = descend(folder, parts) if name == FILES.fetch(version)[:kills]
          return new(found, version, nil) if found
        end
        nil
      rescue SystemCallError
        nil
      end

      # @return [Integer] bytes that this process can take before the machine or the tightest group has none left
      def available_bytes
        group, = tightest
        machine = KernelFile.read("/proc/meminfo")[/^MemAvailable:\s+(\d+) kB/, 1].to_i * 1024
        [machine, *([group.limit_bytes - (group.used_bytes || 0), 0].max if group)].min
      end

      # The memory that counts as used.
      #
      # @param charged [Integer] bytes of the group
      # @param reclaimable [Integer] bytes that the kernel reclaims before it kills
      # @return [Integer] bytes
      def used(charged, reclaimable) = [charged - reclaimable, 0].max

      # @param path [String] of a file with a limit
      # @param problems [Array<String>] gets a sentence if it cannot be used
      # @return [Integer, nil] nil without a limit; the root group has no such files
      def limit(path, problems = [])
        text = KernelFile.read(path).strip
        return if text == "max"
        return Integer(text, 10).then { |bytes| bytes if bytes < UNLIMITED_BYTES } if text.match?(/\A\d{1,20}\z/)

        problems << "#{path} has no number of bytes"
        nil
      rescue Errno::ENOENT
        nil
      rescue SystemCallError => e
        problems << sentence(e)
        nil
      end

      private

      # @return [Array<Array(String, Integer)>] as of ControlGroups
      def folders(pid, root, problems)
        version, = ControlGroups.membership("memory", pid: pid, root: root)
        found = ControlGroups.folders("memory", pid: pid, root: root)
        return found if found.any? || version.nil?

        problems << "the memory limit is unknown: the control groups (version #{version}) are not mounted"
        []
      rescue SystemCallError => e
        problems << sentence(e)
        []
      end

      # @return [String, nil] the folder that the parts lead to; nil: one of them is no folder in the one before
      def descend(folder, parts)
        parts.reduce(folder) do |parent, name|
          break unless Dir.children(parent).include?(name) && File.lstat(File.join(parent, name)).directory?

          File.join(parent, name)
        end
      end

      def read(folder, version, problems)
        limits = FILES.fetch(version)[:limits].filter_map { |name| limit(File.join(folder, name), problems) }
        limits << hidden_limit(folder) if version == 1
        limits.compact!
        new(folder, version, limits.min) if limits.any?
      end

      # Version 1: the least limit of the group and all above it, also of those outside of the namespace.
      def hidden_limit(folder)
        bytes = KernelFile.read(File.join(folder, "memory.stat"))[/^hierarchical_memory_limit (\d{1,20})$/, 1]&.to_i
        bytes if bytes && bytes < UNLIMITED_BYTES
      rescue SystemCallError
        nil
      end

      def sentence(error) = "the memory limit is unknown: #{error.message.scrub("?").sub(/ @ \S+/, "")}"
    end

    # @return [String]
    attr_reader :folder

    # @return [Integer] 1 or 2
    attr_reader :version

    # @return [Integer, nil] nil: it has none
    attr_reader :limit_bytes

    # @param version [Integer] 1 or 2
    # @param limit_bytes [Integer, nil]
    def initialize(folder, version, limit_bytes)
      @folder = folder
      @version = version
      @limit_bytes = limit_bytes
    end

    # @return [Integer, nil] bytes that count for the OOM killer; nil if they cannot be read
    def used_bytes
      charged = KernelFile.read(usage_file)[/\A\d{1,20}/] or return

      self.class.used(charged.to_i, reclaimable_bytes)
    rescue SystemCallError
      nil
    end

    # @return [String] the file with the charged bytes
    def usage_file = file(FILES.fetch(version)[:usage])

    # @return [String] the file with the limit that the kernel kills at
    def limit_file = file(FILES.fetch(version)[:limits].first)

    # @return [String] the file with the number of killed processes
    def kills_file = file(FILES.fetch(version)[:kills])

    # @return [String, nil] the file with the time lost for lack of memory; nil in version 1
    def pressure_file = FILES.fetch(version)[:pressure]&.then { |name| file(name) }

    # @return [String] the file with what they consist of
    def stat_file = file("memory.stat")

    private

    def file(name) = File.join(folder, name)

    # As ext/culet/reading/group.c, which has this rule for a process that reads its own group.
    def reclaimable_bytes
      text = KernelFile.read(stat_file)
      fields = text.scan(/^(\w+) (\d{1,20})$/).to_h { |name, bytes| [name, bytes.to_i] }
      prefix, mapped = fields.key?("total_inactive_file") ? %w[total_ total_mapped_file] : ["", "file_mapped"]
      active = fields.fetch("#{prefix}active_file", 0) - fields.fetch(mapped, 0)
      fields.fetch("#{prefix}inactive_file", 0) + [active, 0].max + fields.fetch("slab_reclaimable", 0)
    rescue SystemCallError
      0
    end
  end
end
