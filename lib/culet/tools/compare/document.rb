# frozen_string_literal: true

require_relative "../../version"
require_relative "statistics"

module Culet
  module Compare
    # Gathers runs and exclusions and makes the result document of them, a Hash of
    # plain values as `culet compare --json` prints it.
    class Document
      FIGURES = %w[peak_rss_bytes mean_rss_bytes end_rss_bytes peak_pss_bytes mean_pss_bytes cpu_seconds wall_seconds
                   loaded_rss_bytes loaded_pss_bytes end_pss_bytes requests requests_per_second p50_seconds p99_seconds cpu_per_request_seconds].freeze
      COMPARED = %w[peak_rss_bytes mean_rss_bytes end_rss_bytes peak_pss_bytes mean_pss_bytes cpu_seconds wall_seconds].freeze
      # A server runs for as long as the load does, whatever it gets done: its CPU time counts per request.
      COMPARED_OF_SERVERS = %w[peak_rss_bytes mean_rss_bytes end_rss_bytes peak_pss_bytes mean_pss_bytes
                               loaded_rss_bytes loaded_pss_bytes end_pss_bytes requests_per_second p50_seconds p99_seconds cpu_per_request_seconds].freeze

      # @param plan [Plan]
      def initialize(plan)
        @plan = plan
        @runs = Hash.new { |runs, key| runs[key] = [] }
        @excluded = {}
      end

      # @param turn [Plan::Turn]
      # @param figures [Hash] of Trial
      def add(turn, figures)
        @runs[[turn.workload.name, turn.choice.spec]] << { "run" => turn.run, "order" => turn.order, **figures }
      end

      # Leaves a contender out of a workload, with all of its runs: an allocator under which a program fails
      # once in five is not measured by the other four.
      #
      # @param workload [String]
      # @param allocator [String] its spec
      # @param run [Integer, nil] the run that failed; nil when none was made
      # @param exclusion [Exclusion]
      def exclude(workload, allocator, run, exclusion)
        @runs.delete([workload, allocator])
        @excluded[[workload, allocator]] ||= { "workload" => workload, "allocator" => allocator, "run" => run,
                                               "reason" => exclusion.message, "remedy" => exclusion.remedy }
      end

      # @return [Boolean]
      def excluded?(workload, allocator) = @excluded.key?([workload, allocator])

      # @return [Boolean] whether there is any result
      def empty? = @runs.empty?

      # @param complete [Boolean] false when the user stopped it
      # @param environment [Hash] of Machine
      # @return [Hash]
      def to_h(complete:, environment:)
        { "culet" => VERSION, "complete" => complete, "environment" => environment, "allocators" => allocators,
          "results" => results, "comparisons" => comparisons, "excluded" => excluded }
      end

      private

      def statistics = @statistics ||= Statistics.new(seed: @plan.seed)

      def allocators
        @plan.choices.map do |choice|
          there = choice.available?
          { "name" => choice.spec, "version" => (choice.version if there), "library" => (choice.library if there),
            "environment" => there ? choice.environment({}, isolated: true).compact : {} }
        end
      end

      def excluded
        @plan.workloads.product(@plan.choices).filter_map { |workload, choice| @excluded[[workload.name, choice.spec]] }
      end

      # In the order of the plan, not of the shuffle.
      def pairs
        @plan.workloads.product(@plan.choices).select { |workload, choice| @runs.key?([workload.name, choice.spec]) }
      end

      def runs(workload, allocator) = @runs.fetch([workload.name, allocator], [])

      def results
        pairs.map do |workload, choice|
          runs = runs(workload, choice.spec).sort_by { |run| run["run"] }
          { "workload" => workload.name, "allocator" => choice.spec, "runs" => runs, "summary" => summaries(runs) }
        end
      end

      def summaries(runs)
        FIGURES.each_with_object({}) do |figure, all|
          values = runs.filter_map { |run| run[figure] }
          all[figure] = statistics.summary(values) if values.any?
        end
      end

      def comparisons
        pairs.flat_map do |workload, choice|
          next [] if choice.spec == @plan.baseline

          (workload.server? ? COMPARED_OF_SERVERS : COMPARED).filter_map { |figure| comparison(workload, choice.spec, figure) }
        end
      end

      def comparison(workload, allocator, figure)
        found = statistics.compare(by_run(workload, allocator, figure), by_run(workload, @plan.baseline, figure))
        found && { "workload" => workload.name, "allocator" => allocator, "baseline" => @plan.baseline, "metric" => figure, **found }
      end

      def by_run(workload, allocator, figure)
        runs(workload, allocator).to_h { |run| [run["run"], run[figure]] }.compact
      end
    end
  end
end
