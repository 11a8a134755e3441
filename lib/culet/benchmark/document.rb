# frozen_string_literal: true

require_relative "../version"
require_relative "../model/statistics"
require_relative "metric"

module Culet
  module Benchmark
    # Collects runs and exclusions; the result is a Hash, as `culet compare --json` prints it.
    class Document
      METRICS = [*Benchmark::METRICS.map(&:key), "requests"].freeze
      COMPARED = Benchmark::METRICS.reject(&:server).map(&:key).freeze
      # A server runs as long as the load, so its CPU time counts per request.
      COMPARED_FOR_SERVERS = Benchmark::METRICS.reject { |metric| metric.kind == :time }.map(&:key).freeze

      def initialize(plan)
        @plan = plan
        @runs = Hash.new { |runs, key| runs[key] = [] }
        @excluded = {}
      end

      # @param scheduled [Plan::ScheduledRun]
      # @param metrics [Hash] of Run
      def add(scheduled, metrics)
        @runs[[scheduled.workload.name, scheduled.choice.spec]] <<
          { "run" => scheduled.run, "order" => scheduled.order, **metrics }
      end

      # Excludes a candidate from a workload with all its runs: an allocator with which one run of five fails is not
      # judged by the other four.
      #
      # @param workload [#name] of the plan
      # @param choice [#spec] of the plan
      # @param run [Integer, nil] the failed run; nil before the first
      def exclude(workload, choice, run, exclusion)
        @runs.delete([workload.name, choice.spec])
        @excluded[[workload.name, choice.spec]] ||=
          { **about(workload, choice), "run" => run, "reason" => exclusion.message, "remedy" => exclusion.remedy }
      end

      def excluded?(workload, choice) = @excluded.key?([workload.name, choice.spec])

      # @param complete [Boolean] false after an interruption
      # @param environment [Hash] of Machine
      def to_h(complete:, environment:)
        { "culet" => VERSION, "complete" => complete, **head(environment),
          "results" => results, "comparisons" => comparisons, "excluded" => excluded }
      end

      private

      # The methods from here to `baseline` are those of a comparison of allocators; an experiment has others.
      def head(environment) = { "environment" => environment, "allocators" => allocators }

      # What a result, a comparison or an exclusion is of.
      def about(workload, choice) = { "workload" => workload.name, "allocator" => choice.spec }

      def metrics = METRICS

      def compared(workload) = workload.server? ? COMPARED_FOR_SERVERS : COMPARED

      # @return [String] spec of the candidate that this one is compared with
      def baseline(_choice) = @plan.baseline

      def statistics = @statistics ||= Statistics.new(seed: @plan.seed)

      def allocators
        @plan.choices.map do |choice|
          available = choice.available?
          { "name" => choice.spec, "version" => (choice.version if available),
            "library" => (choice.library if available),
            "environment" => available ? choice.environment({}, isolated: true).compact : {} }
        end
      end

      def excluded
        @plan.workloads.product(@plan.choices).filter_map { |workload, choice| @excluded[[workload.name, choice.spec]] }
      end

      # In the order of the plan.
      def pairs
        @plan.workloads.product(@plan.choices).select { |workload, choice| @runs.key?([workload.name, choice.spec]) }
      end

      def runs(workload, allocator) = @runs.fetch([workload.name, allocator], [])

      def results
        pairs.map do |workload, choice|
          runs = runs(workload, choice.spec).sort_by { |run| run["run"] }
          { **about(workload, choice), "runs" => runs, "summary" => summaries(runs) }
        end
      end

      def summaries(runs)
        metrics.each_with_object({}) do |metric, all|
          values = runs.filter_map { |run| run[metric] }
          all[metric] = statistics.summary(values) if values.any?
        end
      end

      def comparisons
        pairs.flat_map do |workload, choice|
          next [] if choice.spec == baseline(choice)

          compared(workload).filter_map { |metric| comparison(workload, choice, metric) }
        end
      end

      def comparison(workload, choice, metric)
        baseline = baseline(choice)
        found = statistics.compare(by_run(workload, choice.spec, metric), by_run(workload, baseline, metric))
        found && { **about(workload, choice), "baseline" => baseline, "metric" => metric, **found }
      end

      def by_run(workload, allocator, metric)
        runs(workload, allocator).to_h { |run| [run["run"], run[metric]] }.compact
      end
    end
  end
end
