# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/errors"
require "culet/system/memory_group"

# Control groups for tests: files of version 2 in a folder of their own, and real groups of version 1.
module LimitHelper
  MEBIBYTE = 1 << 20
  # Runs a command in a real control group, whose folder is the next word.
  JOIN = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"'].freeze

  # A root with /proc and a hierarchy of version 2.
  #
  # @param path [String] the process's group
  # @param groups [Hash{String => Hash{String => String}}] by path, the files of a group
  # @yield [String] the root
  def with_unified_groups(path, mount_root: "/", **groups)
    Dir.mktmpdir do |root|
      FileUtils.mkdir_p("#{root}/proc/self")
      File.write("#{root}/proc/self/cgroup", "1:name=systemd:/elsewhere\n0::#{path}\n")
      File.write("#{root}/proc/self/mountinfo", "30 23 0:26 #{mount_root} /sys/fs/c\\040group rw - cgroup2 cgroup2 rw\n")
      groups.each do |group, files|
        FileUtils.mkdir_p("#{root}/sys/fs/c group#{group}")
        files.each { |name, text| File.write("#{root}/sys/fs/c group#{group}/#{name}", text) }
      end
      yield root
    end
  end

  # A real control group below that of this process.
  #
  # @param bytes [Integer] its limit
  # @yield [String] its folder
  def with_real_group(bytes)
    path = File.read("/proc/self/cgroup")[/^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/, 1]
    skip "the memory controller of control groups, version 1, is not mounted" unless path
    folder = File.join("/sys/fs/cgroup/memory", path, "culet-test-#{Process.pid}-#{object_id}")
    begin
      Dir.mkdir(folder)
      File.write("#{folder}/memory.limit_in_bytes", bytes.to_s)
    rescue SystemCallError => e
      skip "control groups cannot be made: #{e.message}"
    end
    yield folder
  ensure
    remove_group(folder) if folder && Dir.exist?(folder)
  end

  # A server in a real control group, of which the kernel kills no process.
  #
  # @param mebibytes [Integer] its limit
  def with_limited_server(mebibytes, *command, **options)
    with_real_group(mebibytes * MEBIBYTE) do |folder|
      with_server(*JOIN, folder, *command, **options) do |server|
        yield server
        assert_match(/^oom_kill 0$/, File.read("#{folder}/memory.oom_control"))
      end
    end
  end

  # Runs a Ruby program in a control group.
  #
  # @return [Array(String, String, Process::Status)] stdout, stderr, status
  def run_in_group(folder, *words, env: {})
    joins = "File.write(ARGV.shift + '/cgroup.procs', Process.pid.to_s); exec(*ARGV)"
    run_program(RbConfig.ruby, "--disable-gems", "-e", joins, folder, RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", *words,
                env: TestHelper::NEUTRAL.merge("CULET_LIMIT" => nil, "CULET_TRIM" => nil).merge(env))
  end

  private

  # A killed process leaves its group a moment after it has been waited for.
  def remove_group(folder)
    100.times do
      return Dir.rmdir(folder)
    rescue Errno::EBUSY
      sleep 0.05
    end
    flunk "#{folder} has processes: #{File.read("#{folder}/cgroup.procs")}"
  end
end
