# frozen_string_literal: true

require_relative "document"
require_relative "exclusion"
require_relative "machine"
require_relative "trial"

module Culet
  module Compare
    # Makes the runs of a plan, one at a time, and gathers what comes of them.
    class Engine
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

      # @return [Hash] the result document; "complete" is false when the user stopped it
      # @raise [Culet::Error] when a command cannot be run at all
      def call
        environment = @machine.to_h
        complete = make_runs
        @document.to_h(complete: complete, environment: environment)
      ensure
        @progress.finish
      end

      private

      def make_runs
        exclude_absent
        @plan.turns.each do |turn|
          @interruption.check
          make(turn)
        end
        true
      rescue Interrupted
        false
      end

      def exclude_absent
        @plan.choices.each do |choice|
          next if choice.available?

          absence = exclusion_of(choice)
          @plan.workloads.each { |workload| exclude(workload, choice, nil, absence) }
        end
      end

      # The catalogue's sentence is "what is wrong: what to do".
      def exclusion_of(choice)
        choice.library
      rescue Error => e
        reason, remedy = e.message.split(": ", 2)
        Exclusion.new(reason, remedy: remedy)
      end

      def make(turn)
        return @progress.skip if @document.excluded?(turn.workload.name, turn.choice.spec)

        prepare(turn.workload)
        @progress.start(turn)
        figures = Trial.new(workload: turn.workload, choice: turn.choice, plan: @plan, interruption: @interruption).call
        @document.add(turn, figures)
        @progress.done(turn, figures)
      rescue Exclusion => e
        exclude(turn.workload, turn.choice, (turn.run unless turn.workload.unprepared?), e)
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
