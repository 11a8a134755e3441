# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"

module Culet
  module Cow
    # Sharing over time, from smaps_rollup alone: a sample stops no process.
    class History
      # at_seconds: since the first sample; processes: Array of Hashes with the keys of the JSON document.
      Sample = Struct.new(:at_seconds, :processes, keyword_init: true) do
        # @return [Integer] bytes of all processes
        def total_pss_bytes = processes.sum { |one| one["pss_bytes"] }

        # @return [Array<Hash>] processes whose parent is in the sample
        def workers
          pids = processes.map { |one| one["pid"] }
          processes.select { |one| pids.include?(one["parent_pid"]) }
        end

        # @return [Hash, nil]
        def worker(pid) = workers.find { |one| one["pid"] == pid }

        # @param figure [String] a key of the processes
        # @return [Float, nil] the workers' average; nil without workers
        def worker_mean(figure) = workers.then { |all| all.sum { |one| one[figure] }.fdiv(all.size) unless all.empty? }

        # @return [Hash{String => Object}] for a JSON document
        def document
          { "at_seconds" => at_seconds.round(3), "total_pss_bytes" => total_pss_bytes, "processes" => processes }
        end
      end

      attr_reader :samples

      # @param pids [Array<Integer>] the roots of the process trees
      def initialize(pids)
        @trees = pids.map { |pid| Processes::Tree.new(pid) }
        @samples = []
      end

      # Takes a sample.
      #
      # @return [Boolean] whether any process is left
      def take
        at = Clock.now
        @start ||= at
        found = @trees.flat_map(&:pids).uniq.filter_map { |pid| figures(pid) }
        @samples << Sample.new(at_seconds: at - @start, processes: found) if found.any?
        found.any?
      end

      # @return [Array<Integer>] all workers, in the order of their appearance
      def workers = samples.flat_map { |one| one.workers.map { |worker| worker["pid"] } }.uniq

      # @yieldparam sample [Sample]
      # @yieldreturn [Numeric, nil] nil: no point
      # @return [Array<Array(Float, Numeric)>] seconds and the block's value for each sample
      def points = samples.filter_map { |one| yield(one)&.then { |value| [one.at_seconds, value] } }

      # @return [Array<Hash>] for a JSON document
      def document = samples.map(&:document)

      private

      def figures(pid)
        memory = Processes::Memory.rollup(pid)
        parent = Processes::Cpu.parent(pid)
        return if memory.empty? || parent.nil?

        { "pid" => pid, "parent_pid" => parent, "age_seconds" => Processes::Cpu.age_seconds(pid)&.round(3),
          "rss_bytes" => memory["rss_bytes"], "pss_bytes" => memory["pss_bytes"],
          "shared_bytes" => memory["shared_bytes"], "private_bytes" => memory["private_bytes"] }
      end
    end
  end
end
