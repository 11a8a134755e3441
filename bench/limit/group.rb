# frozen_string_literal: true

require "culet/system/clock"
require "culet/system/memory_group"

module Limits
  # A control group with a limit, below that of this process. Takes root.
  class Group
    # Which program joins the group: $0 is its folder.
    JOIN = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"'].freeze
    # A killed process leaves its group a moment after it has been waited for, in seconds.
    PATIENCE = 10

    attr_reader :folder

    # @param bytes [Integer] the limit
    # @yieldparam [Group]
    # @return [Object] the block's value
    # @raise [Culet::Error] where no groups can be made
    def self.with(bytes)
      group = new
      group.limit = bytes
      yield group
    ensure
      group&.remove
    end

    def initialize
      parent, problems = Culet::MemoryGroup.own
      raise Culet::Error, problems.first || "this process is in no control group that counts memory" unless parent

      @version = parent.version
      @folder = File.join(parent.folder, "culet-bench-#{::Process.pid}-#{object_id}")
      Dir.mkdir(@folder)
    rescue SystemCallError => e
      raise Culet::Error, "no control group can be made: #{e.message.sub(/ @ .*/, "")}"
    end

    def limit=(bytes)
      File.write(file(@version == 1 ? "memory.limit_in_bytes" : "memory.max"), bytes.to_s)
      swap = file("memory.swap.max")
      File.write(swap, "0") if File.exist?(swap)
      @bytes = bytes
    rescue SystemCallError => e
      raise Culet::Error, "no limit can be set: #{e.message.sub(/ @ .*/, "")}"
    end

    # @return [Array<String>] a command that runs another in the group
    def command(*words) = [*JOIN, folder, *words]

    # @return [Integer] processes that the kernel has killed
    def kills = File.read(file(@version == 1 ? "memory.oom_control" : "memory.events"))[/^oom_kill (\d+)/, 1].to_i

    # @return [Float] used by the limit
    def used_share = Culet::MemoryGroup.new(folder, @version, @bytes).used_bytes.to_i.fdiv(@bytes)

    def remove
      deadline = Culet::Clock.now + PATIENCE
      begin
        Dir.rmdir(folder)
      rescue Errno::EBUSY
        raise if Culet::Clock.now > deadline

        sleep 0.05
        retry
      end
    end

    private

    def file(name) = File.join(folder, name)
  end
end
