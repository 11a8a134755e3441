# frozen_string_literal: true

require "culet/errors"
require "open3"

module TrimPuma
  # Which processor something runs on, by util-linux' taskset.
  module Affinity
    module_function

    # @return [Array<Integer>] two processors that this process may use
    # @raise [Culet::Error] when there are no two
    def two
      list = File.read("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1].to_s
      found = list.split(",").flat_map { |part| part.split("-").map(&:to_i).then { |from, to| [*from..(to || from)] } }
      raise Culet::Error, "the servers and their load need a processor each, here is one for both: start it where there are two" if found.size < 2

      found.first(2)
    end

    # Moves all threads of a process.
    #
    # @raise [Culet::Error] when it cannot be
    def move(pid, processor)
      text, status = Open3.capture2e("taskset", "--all-tasks", "--cpu-list", "--pid", processor.to_s, pid.to_s)
      raise Culet::Error, "process #{pid} cannot be moved to processor #{processor}: #{text.strip}" unless status.success?
    end

    # @return [Array<String>] the words that start a program on a processor
    def prefix(processor) = ["taskset", "--cpu-list", processor.to_s]
  end
end
