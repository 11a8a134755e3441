# frozen_string_literal: true

module Culet
  module BlackBox
    # The files of the control group whose limit of memory is the tightest: the process's own, or one above it
    # (cgroups(7), versions 2 and 1). Without a limit, those of its own group. Kills are always those that its own group
    # counts: version 1 counts them nowhere else.
    module ControlGroup
      # Names in a group's folder: use, limit, statistics, kills, pressure.
      VERSION2 = %w[memory.current memory.max memory.stat memory.events memory.pressure].freeze
      VERSION1 = ["memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat", "memory.oom_control", nil].freeze
      # Version 1 writes the largest number of whole pages for "no limit".
      UNLIMITED_BYTES = 1 << 60
      NONE = Array.new(VERSION2.size).freeze
      KILLS = 3
      ESCAPE = /\\([0-7]{3})/
      private_constant :VERSION2, :VERSION1, :UNLIMITED_BYTES, :NONE, :KILLS, :ESCAPE

      module_function

      # @param proc [String] folder of the process in /proc
      # @return [Array<String, nil>] the five paths; all nil if the process is in no group that counts memory
      def files(proc = "/proc/self")
        mounts = mounts(File.read(File.join(proc, "mountinfo")))
        groups = File.read(File.join(proc, "cgroup")).each_line.map { |line| line.chomp.split(":", 3) }
        found = groups.filter_map { |_, controllers, path| candidates(mounts, controllers.to_s, path.to_s) }.flatten(1)
        tightest = found.min_by { |paths| limit(paths[1]) } or return NONE
        tightest.dup.tap { |paths| paths[KILLS] = found.first[KILLS] }
      rescue SystemCallError
        NONE
      end

      # @return [Array<Array>, nil] the files of the group and those above it, the innermost first
      def candidates(mounts, controllers, path)
        version2 = controllers.empty?
        return unless version2 || controllers.split(",").include?("memory")

        root, point = mounts.fetch(version2 ? :version2 : :version1, nil)
        return unless point

        folders(point, inside(root, path)).filter_map do |folder|
          paths = (version2 ? VERSION2 : VERSION1).map { |name| name && File.join(folder, name) }
          paths if File.readable?(paths.first)
        end
      end
      private_class_method :candidates

      # Inside a container, the root of the mount is the container's group, or the path is that of the host.
      def inside(root, path)
        return "/" if path.include?("..")
        return path if root == "/"

        path == root || path.start_with?("#{root}/") ? "/#{path.delete_prefix(root)}" : "/"
      end
      private_class_method :inside

      def folders(point, path)
        parts = path.split("/").reject(&:empty?)
        parts.size.downto(0).map { |count| File.join(point, *parts.first(count)) }
      end
      private_class_method :folders

      def limit(path)
        text = File.read(path)
        text.match?(/\A\d+$/) && text.to_i < UNLIMITED_BYTES ? text.to_i : UNLIMITED_BYTES
      rescue SystemCallError
        UNLIMITED_BYTES
      end
      private_class_method :limit

      # Lines of mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS
      def mounts(text)
        text.each_line.with_object({}) do |line, found|
          before, after = line.chomp.split(" - ", 2)
          root, point = before.to_s.split[3, 2]
          type, _, options = after.to_s.split
          key = :version2 if type == "cgroup2"
          key = :version1 if type == "cgroup" && options.to_s.split(",").include?("memory")
          found[key] ||= [root, point].map { |path| path.to_s.gsub(ESCAPE) { Regexp.last_match(1).oct.chr } } if key
        end
      end
      private_class_method :mounts
    end
  end
end
