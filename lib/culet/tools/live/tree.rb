# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Live
    # The processes below some roots, again and again. All of them are asked for their children every few rounds; in
    # between, those that have had some.
    class Tree
      # Rounds from one search of all processes to the next.
      ROUNDS = 10
      private_constant :ROUNDS

      # @param roots [Array<Integer>] process numbers
      def initialize(roots)
        @trees = roots.uniq.to_h { |pid| [pid, Processes::Tree.new(pid)] }
        @parents = []
        @round = 0
      end

      # @param known [Array<Integer>] processes found before that still live: those whose parent has ended are kept
      # @return [Array<Integer>] each process once, roots first, then by generation
      def pids(known)
        all = (@round % ROUNDS).zero?
        @parents = [] if all
        @round += 1
        found = @trees.keys
        found.each { |pid| children(pid, all)&.then { |pids| found.concat(pids - found) } }
        found | known
      end

      private

      def children(pid, all)
        return unless all || @trees.key?(pid) || @parents.include?(pid)

        list = (@trees[pid] || @trees.each_value.first).children(pid).to_a
        @parents |= [pid] if list.any?
        list
      end
    end
  end
end
