# frozen_string_literal: true

require_relative "document"
require_relative "exclusion"
require_relative "../system/interruption"

module Culet
  # Runs of several contenders in turns, and what they show: `culet compare`, `culet replay` and
  # `culet cow experiment` are made of it.
  #
  #   Plan       workloads, contenders, number of runs, seed
  #   Runner     makes the runs in rounds; Exclusion: a failed one; Progress: a line for each
  #   Machine    where they were made; Child: a measured process; PreloadCheck: whether it really used its allocator
  #   Document   the result: printed by `--json`, read by every report
  #   Results    a document as the reports read it; Metric, Palette
  module Benchmark
    # Makes the runs of a plan, one at a time, and collects the results.
    class Runner
      def initialize(plan:, interruption:, progress:, document: Document.new(plan))
        @plan = plan
        @interruption = interruption
        @progress = progress
        @document = document
      end

      # @param environment [Hash] of Machine, with the settings of the tool
      # @yieldparam scheduled [Plan::ScheduledRun]
      # @yieldreturn [Hash] the metrics of the run; an Exclusion that the block raises excludes its candidate
      # @return [Hash] the result document; "complete" is false after an interruption
      # @raise [Culet::Error] when a command cannot be run
      def call(environment, &measure)
        complete = make_runs(&measure)
        @document.to_h(complete: complete, environment: environment)
      end

      private

      def make_runs(&measure)
        exclude_unavailable
        @plan.schedule.each do |scheduled|
          @interruption.check
          make(scheduled, &measure)
        end
        true
      rescue Interrupted
        false
      end

      def exclude_unavailable
        @plan.choices.reject(&:available?).each do |choice|
          exclusion = exclusion_of(choice)
          @plan.workloads.each { |workload| exclude(workload, choice, nil, exclusion) }
        end
      end

      # The catalogue's message is "reason: remedy".
      def exclusion_of(choice)
        choice.library
      rescue Error => e
        reason, remedy = e.message.split(": ", 2)
        Exclusion.new(reason, remedy: remedy)
      end

      def make(scheduled)
        return @progress.skip if @document.excluded?(scheduled.workload, scheduled.choice)

        prepare(scheduled.workload)
        metrics = yield(scheduled)
        @document.add(scheduled, metrics)
        @progress.done(scheduled, metrics)
      rescue Exclusion => e
        exclude(scheduled.workload, scheduled.choice, (scheduled.run unless scheduled.workload.unprepared?), e)
        @progress.skip
      end

      def prepare(workload)
        return unless workload.unprepared?

        @failed_preparations ||= {}
        raise @failed_preparations[workload] if @failed_preparations[workload]

        workload.prepare(log: @progress) { @interruption.check }
      rescue Exclusion => e
        raise @failed_preparations[workload] = e
      end

      def exclude(workload, choice, run, exclusion)
        @document.exclude(workload, choice, run, exclusion)
        @progress.excluded(workload.name, choice.spec, run, exclusion)
      end
    end
  end
end
