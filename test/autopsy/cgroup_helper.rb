# frozen_string_literal: true

# Control groups with a limit of memory, made by the test: by version 1 where its controller is mounted, else by
# version 2 where the root's groups may have the controller. Takes root.
module CgroupHelper
  VERSION1 = "/sys/fs/cgroup/memory"
  VERSION2 = "/sys/fs/cgroup"

  private

  # @return [String, nil] why there can be none
  def no_cgroups
    return "making control groups takes root" unless Process.euid.zero?
    return if File.exist?(File.join(VERSION1, "memory.limit_in_bytes"))
    return "no memory controller is mounted" unless version2?

    "version 2's root does not give the memory controller to its groups" unless
      File.read(File.join(VERSION2, "cgroup.subtree_control")).split.include?("memory")
  end

  def version2? = File.exist?(File.join(VERSION2, "cgroup.controllers"))

  # @param bytes [Integer] the limit
  # @yieldparam group [String] its folder
  def with_cgroup(bytes)
    reason = no_cgroups
    skip reason if reason
    group = File.join(File.exist?(VERSION1) ? VERSION1 : VERSION2, "culet-test-#{Process.pid}-#{rand(1 << 32).to_s(16)}")
    begin
      Dir.mkdir(group)
    rescue SystemCallError => e
      skip "no control group can be made: #{e.message}"
    end
    limit(group, bytes)
    yield group
  ensure
    remove(group) if group && Dir.exist?(group)
  end

  def limit(group, bytes)
    names = File.exist?(File.join(group, "memory.max")) ? { "memory.max" => bytes, "memory.swap.max" => 0 } : { "memory.limit_in_bytes" => bytes, "memory.memsw.limit_in_bytes" => bytes }
    names.each { |name, value| File.write(File.join(group, name), value.to_s) if File.exist?(File.join(group, name)) }
  end

  # @return [Array<String>] a command that runs another one in the group
  def in_cgroup(group, *command)
    ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, *command]
  end

  # The kernel takes a moment to forget processes that have ended.
  def remove(group)
    100.times do
      File.read(File.join(group, "cgroup.procs")).split.each { |pid| Process.kill(:KILL, Integer(pid)) }
      return Dir.rmdir(group)
    rescue SystemCallError
      sleep 0.05
    end
  end
end
