# frozen_string_literal: true

require_relative "cpu"

module Culet
  module Processes
    # Processes with all their descendants, also those that moved to a session of their own. A descendant whose
    # parent has ended is then a child of another process, and is not found again; callers that must not lose
    # one keep the known numbers.
    class Tree
      # Rounds of `follow` from one search of all processes to the next.
      ROUNDS = 10
      private_constant :ROUNDS

      # @param roots [Array<Integer>] the processes at the top
      def initialize(*roots)
        @roots = roots.uniq
        @parents = []
        @round = 0
      end

      # @return [Array<Integer>] the numbers of the processes that live now, roots first, then by generation; empty when
      #   they have ended
      def pids
        ended = []
        found = descend(@roots.dup) do |pid|
          list = children(pid)
          ended << pid unless list
          list
        end
        found - ended
      end

      # For repeated reading: all processes are asked for their children every few rounds; in between, those that have
      # had some.
      #
      # @param known [Array<Integer>] processes found before that still live: those whose parent has ended are kept
      # @return [Array<Integer>] as of `pids`; of the roots, also those that have ended
      def follow(known)
        all = (@round % ROUNDS).zero?
        @parents = [] if all
        @round += 1
        descend(@roots.dup) do |pid|
          next [] unless all || @roots.include?(pid) || @parents.include?(pid)

          children(pid).to_a.tap { |list| @parents |= [pid] if list.any? }
        end | known
      end

      # Children belong to the thread that forked them, hence the loop over threads. The `children` file needs a
      # kernel with CONFIG_PROC_CHILDREN; without it every process is asked for its parent.
      #
      # @return [Array<Integer>, nil] nil when the process has ended
      def children(pid)
        threads = Dir.children("/proc/#{pid}/task")
        return by_parent(pid) unless self.class.children_file?

        threads.flat_map { |thread| of_thread(pid, thread) }
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      private

      # @yieldreturn [Array<Integer>, nil] children of a process; nil: it is left out
      def descend(found) = found.each { |pid| yield(pid)&.then { |list| found.concat(list - found) } }

      def of_thread(pid, thread)
        File.read("/proc/#{pid}/task/#{thread}/children").split.map(&:to_i)
      rescue *GONE_OR_FORBIDDEN
        [] # the thread has ended
      end

      def by_parent(pid) = Search.pids.select { |other| Cpu.parent(other) == pid }

      class << self
        def children_file?
          return @children_file if defined?(@children_file)

          @children_file = File.exist?("/proc/self/task/#{::Process.pid}/children")
        end
      end
    end
  end
end
