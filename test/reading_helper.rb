# frozen_string_literal: true

require "test_helper"
require "culet/system/memory_group"

# A root folder with the files of a process and of its control group, for every reader that takes a root.
module ReadingHelper
  # Of a process of this machine, as they are.
  PROCESS_FILES = %w[statm stat status smaps_rollup limits].freeze
  # Of a control group by version: the mount, and files by the names that only one version has.
  VERSIONS = {
    1 => { membership: "4:memory:/app\n", mount: "cgroup cgroup rw,memory", prefix: "total_", mapped: "total_mapped_file",
           charged: "memory.usage_in_bytes", limit: "memory.limit_in_bytes", kills: "memory.oom_control" },
    2 => { membership: "0::/app\n", mount: "cgroup2 cgroup2 rw", prefix: "", mapped: "file_mapped",
           charged: "memory.current", limit: "memory.max", kills: "memory.events" }
  }.freeze

  private

  # @param version [Integer] of control groups
  # @param charged [Integer] bytes
  # @param limit [Integer] bytes
  # @param inactive [Integer] page cache that was not used lately, in bytes
  # @param active [Integer] page cache that was
  # @param mapped [Integer] of both, in bytes
  # @param slab [Integer] the kernel's own caches that it can reclaim, in bytes
  # @param pid [Integer, String] the process whose files are copied
  # @yield [String] the root
  def with_reading_root(version:, charged:, limit:, inactive: 0, active: 0, mapped: 0, slab: 0, pid: "self")
    names = VERSIONS.fetch(version)
    prefix = names[:prefix]
    Dir.mktmpdir("culet-root") do |root|
      write_process(root, names, pid)
      group = FileUtils.mkdir_p("#{root}/sys/fs/cgroup/app").first
      { names[:charged] => charged, names[:limit] => limit, names[:kills] => "low 0\noom_kill 3",
        "memory.stat" => "cache 1\n#{prefix}inactive_file #{inactive}\n#{prefix}active_file #{active}\n" \
                         "#{names[:mapped]} #{mapped}\nslab_reclaimable #{slab}" }
        .each { |name, text| File.write(File.join(group, name), "#{text}\n") }
      yield root
    end
  end

  def write_process(root, names, pid)
    folder = FileUtils.mkdir_p("#{root}/proc/self").first
    PROCESS_FILES.each { |name| File.write(File.join(folder, name), File.read("/proc/#{pid}/#{name}")) }
    File.write(File.join(folder, "cgroup"), names[:membership])
    File.write(File.join(folder, "mountinfo"), "30 23 0:26 / /sys/fs/cgroup rw - #{names[:mount]}\n")
  end
end
