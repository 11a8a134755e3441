# frozen_string_literal: true

require_relative "document"
require_relative "exclusion"
require_relative "machine"
require_relative "run"

module Culet
  module Compare
    # Makes the runs of a plan, one at a time, and collects the results.
    class Runner
      # @param plan [Plan]
      # @param interruption [Interruption]
      # @param progress [Progress]
      # @param ruby [String] that runs the built-in workloads
      def initialize(plan:, interruption:, progress:, ruby: RbConfig.ruby)
        @plan = plan
        @interruption = interruption
        @progress = progress
        @machine = Machine.new(plan: plan, ruby: ruby)
        @document = Document.new(plan)
      end

      # @return [Hash] the result document; "complete" is false after an interruption
      # @raise [Culet::Error] when a command cannot be run
      def call
        environment = self.environment
        complete = make_runs
        @document.to_h(complete: complete, environment: environment)
      ensure
        @progress.finish
      end

      private

      def environment = @machine.to_h

      # @param scheduled [Plan::ScheduledRun]
      # @return [Hash] the metrics of the run
      # @raise [Exclusion]
      def measure(scheduled)
        Run.new(workload: scheduled.workload, choice: scheduled.choice, plan: @plan, interruption: @interruption).call
      end

      def make_runs
        exclude_unavailable
        @plan.schedule.each do |scheduled|
          @interruption.check
          make(scheduled)
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
        return @progress.skip if @document.excluded?(scheduled.workload.name, scheduled.choice.spec)

        prepare(scheduled.workload)
        @progress.start(scheduled)
        metrics = measure(scheduled)
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
        @document.exclude(workload.name, choice.spec, run, exclusion)
        @progress.excluded(workload.name, choice.spec, run, exclusion)
      end
    end
  end
end
