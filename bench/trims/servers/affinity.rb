# frozen_string_literal: true

require "culet/errors"
require "open3"

module Servers
  # Processors of programs, by taskset of util-linux.
  module Affinity
    module_function

    # @return [Array<Integer>] two processors that this process may use
    # @raise [Culet::Error] when there are no two
    def two
      list = File.read("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1].to_s
      found = list.split(",").flat_map { |part| part.split("-").map(&:to_i).then { |from, to| [*from..(to || from)] } }
      raise Culet::Error, "the servers and their load need a processor each; this machine has one" if found.size < 2

      found.first(2)
    end

    # Moves all threads of a process.
    def move(pid, processor)
      text, status = Open3.capture2e("taskset", "--all-tasks", "--cpu-list", "--pid", processor.to_s, pid.to_s)
      return if status.success?

      raise Culet::Error, "process #{pid} cannot be moved to processor #{processor}: #{text.strip}"
    end

    # @return [Array<String>] before a command that is to run on a processor
    def prefix(processor) = ["taskset", "--cpu-list", processor.to_s]
  end
end
