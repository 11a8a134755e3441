# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Cow
    # Sharing over time: what the kernel says of a family again and again, without stopping anybody.
    class History
      # at_seconds: since the first; processes: Array of Hashes by the names of the document.
      Sample = Struct.new(:at_seconds, :processes, keyword_init: true) do
        # @return [Integer] bytes that all of them take
        def total_pss_bytes = processes.sum { |one| one["pss_bytes"] }

        # @return [Array<Hash>] those that another one of them forked
        def workers
          pids = processes.map { |one| one["pid"] }
          processes.select { |one| pids.include?(one["parent_pid"]) }
        end

        # @return [Hash{String => Object}]
        def document = { "at_seconds" => at_seconds.round(3), "total_pss_bytes" => total_pss_bytes, "processes" => processes }
      end

      # @return [Array<Sample>]
      attr_reader :samples

      # @param pids [Array<Integer>] the families' first processes
      def initialize(pids)
        @trees = pids.map { |pid| Processes::Tree.new(pid) }
        @samples = []
      end

      # @return [Boolean] whether there was anybody to look at
      def take
        at = now
        @start ||= at
        found = @trees.flat_map(&:pids).uniq.filter_map { |pid| figures(pid) }
        @samples << Sample.new(at_seconds: at - @start, processes: found) if found.any?
        found.any?
      end

      # @return [Array<Integer>] all that were forked, in the order of their coming
      def workers = samples.flat_map { |one| one.workers.map { |worker| worker["pid"] } }.uniq

      # @return [Array<Hash>] for a JSON document
      def document = samples.map(&:document)

      private

      def figures(pid)
        memory = Processes::Memory.rollup(pid)
        parent = Processes::Cpu.parent(pid)
        return if memory.empty? || parent.nil?

        { "pid" => pid, "parent_pid" => parent, "age_seconds" => Processes::Cpu.age_seconds(pid)&.round(3), "rss_bytes" => memory["rss_bytes"],
          "pss_bytes" => memory["pss_bytes"], "shared_bytes" => memory.values_at("shared_clean_bytes", "shared_dirty_bytes").sum,
          "private_bytes" => memory.values_at("private_clean_bytes", "private_dirty_bytes").sum }
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
