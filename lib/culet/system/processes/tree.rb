# frozen_string_literal: true

require_relative "cpu"

module Culet
  module Processes
    # A process with all its descendants, also those that moved to a session of their own. A descendant whose
    # parent has ended belongs to another process then and is not found any more: who must not lose one keeps
    # the numbers seen.
    class Tree
      # @param root [Integer] the process at the top
      def initialize(root)
        @root = root
      end

      # @return [Array<Integer>] the numbers of the processes that live now, the root first; empty when it has ended
      def pids
        found = []
        waiting = [@root]
        until waiting.empty?
          pid = waiting.shift
          next if found.include?(pid)

          children = children(pid)
          next unless children

          found << pid
          waiting.concat(children)
        end
        found
      end

      # Children belong to the thread that forked them, hence the loop over threads. The `children` file needs a
      # kernel with CONFIG_PROC_CHILDREN; without it every process is asked for its parent.
      #
      # @param pid [Integer]
      # @return [Array<Integer>, nil] nil when the process has ended
      def children(pid)
        threads = Dir.children("/proc/#{pid}/task")
        return by_parent(pid) unless self.class.children_file?

        threads.flat_map { |thread| of_thread(pid, thread) }
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      private

      def of_thread(pid, thread)
        File.read("/proc/#{pid}/task/#{thread}/children").split.map(&:to_i)
      rescue *GONE_OR_FORBIDDEN
        [] # the thread has ended
      end

      def by_parent(pid)
        Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select { |other| Cpu.parent(other) == pid }
      end

      class << self
        def children_file?
          return @children_file if defined?(@children_file)

          @children_file = File.exist?("/proc/self/task/#{::Process.pid}/children")
        end
      end
    end
  end
end
