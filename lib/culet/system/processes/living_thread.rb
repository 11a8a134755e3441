# frozen_string_literal: true

require_relative "cpu"

module Culet
  module Processes
    # The thread whose files in /proc tell of a process's memory. A main thread that has ended before the others stays
    # in the list as a zombie, without memory.
    module LivingThread
      module_function

      # @param pid [Integer] a process
      # @return [Integer] its main thread, whose number is the process's; where that has ended, one that has not, if any
      def of(pid)
        return pid unless Cpu.thread_state(pid) == "Z"

        threads = Dir.children("/proc/#{pid}/task").map(&:to_i)
        threads.find { |thread| !["Z", "X", nil].include?(Cpu.thread_state(thread)) } || pid
      rescue *GONE_OR_FORBIDDEN
        pid
      end
    end
  end
end
