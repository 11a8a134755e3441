# frozen_string_literal: true

require_relative "kernel_file"

module Culet
  # Finds the control groups of a process, of versions 1 and 2 (cgroups(7)).
  #
  # @api private
  module ControlGroups
    class << self
      # A controller is in one hierarchy at a time.
      #
      # @param controller [String] "memory" or "cpu"
      # @param pid [Integer, String] a process number, or "self"
      # @param root [String] the folder that has /proc and the mounted control groups
      # @return [Array(Integer, String), nil] version and path of the process's group; nil: it is in none
      # @raise [SystemCallError]
      def membership(controller, pid: "self", root: "/")
        text = KernelFile.read(File.join(root, "proc", pid.to_s, "cgroup"))
        lines = text.each_line(chomp: true).map { |line| line.split(":", 3) }
        old = lines.find { |_, controllers, path| path && controllers.split(",").include?(controller) }
        return [1, old[2]] if old

        new = lines.find { |number, controllers, path| path && number == "0" && controllers.empty? }
        [2, new[2]] if new
      end

      # @param controller [String] as above
      # @param pid [Integer, String] as above
      # @param root [String] as above
      # @return [Array<Array(String, Integer)>] the folders of the group and of all above it, with their version; empty
      #   if they are not mounted
      # @raise [SystemCallError]
      def folders(controller, pid: "self", root: "/")
        version, path = membership(controller, pid: pid, root: root)
        _, mount_root, mount_point = mounts(controller, root: root).find { |found, *| found == version }
        mount_point ? ascend(File.join(root, mount_point), below(path, mount_root), version) : []
      end

      # @param controller [String] as above
      # @param root [String] as above
      # @return [Array<Array(Integer, String, String)>] version, root and folder of each mounted hierarchy
      # @raise [SystemCallError]
      def mounts(controller, root: "/")
        KernelFile.read(File.join(root, "proc/self/mountinfo")).each_line.filter_map do |line|
          fields, tail = line.chomp.split(" - ", 2)
          type, _source, options = tail.to_s.split
          _id, _parent, _device, mount_root, point = fields.to_s.split
          version = { "cgroup2" => 2, "cgroup" => 1 }[type]
          next unless version && point && (version == 2 || options.to_s.split(",").include?(controller))

          [version, unescape(mount_root), unescape(point)]
        end
      end

      private

      # The kernel writes spaces and backslashes as octal numbers.
      def unescape(text) = text.gsub(/\\([0-7]{3})/) { Integer(Regexp.last_match(1), 8).chr }

      # The part of the path below the mounted group. In a container the path may be that of the host, or begin with
      # "/.." for a group outside of the namespace: then the mounted group is the tightest that can be seen.
      def below(path, mount_root)
        return "" if path.split("/").include?("..")
        return path if mount_root == "/"

        path == mount_root || path.start_with?("#{mount_root}/") ? path.delete_prefix(mount_root) : ""
      end

      def ascend(mount_point, path, version)
        parts = path.split("/").reject(&:empty?)
        parts = [] unless File.directory?(File.join(mount_point, *parts))
        parts.size.downto(0).map { |count| [File.join(mount_point, *parts.first(count)), version] }
      end
    end
  end
end
