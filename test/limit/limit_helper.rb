# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/errors"
require "culet/system/memory_group"
require "autopsy/cgroup_helper"

# Control groups for tests: files of version 2 in a folder of their own, and real groups of version 1.
module LimitHelper
  include CgroupHelper

  MEBIBYTE = 1 << 20

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

  # @param bytes [Integer] its limit
  # @yieldparam group [String] its folder
  def with_real_group(bytes, &block)
    skip "the memory controller of control groups, version 1, is not mounted" unless File.exist?(VERSION1)
    with_cgroup(bytes, &block)
  end

  # A server in a real control group, of which the kernel kills no process.
  #
  # @param mebibytes [Integer] its limit
  def with_limited_server(mebibytes, *command, **options)
    with_real_group(mebibytes * MEBIBYTE) do |folder|
      with_server(*in_cgroup(folder, *command), **options) do |server|
        yield server
        assert_match(/^oom_kill 0$/, File.read("#{folder}/memory.oom_control"))
      end
    end
  end

  # Runs a Ruby program in a control group.
  #
  # @return [Array(String, String, Process::Status)] stdout, stderr, status
  def run_in_group(folder, *words, env: {})
    run_program(*in_cgroup(folder, RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", *words),
                env: TestHelper::NEUTRAL.merge("CULET_LIMIT" => nil, "CULET_TRIM" => nil).merge(env))
  end
end
