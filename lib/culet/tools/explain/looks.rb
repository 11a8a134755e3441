# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "../../model/retention/growth"
require_relative "../../model/retention/reading"

module Culet
  module Explain
    # Looks at what keeps the objects of one process, spread over a watch. Each is made in a forked copy with idle
    # priority, which takes long on a busy machine: a thread waits for it.
    class Looks
      COUNT = Retention::Growth::LOOKS
      # So many at least tell growth.
      LEAST = 5
      # A process of which a look took more processor time, in seconds, is not looked at again.
      MOST_SECONDS = 5.0
      # A copy that had no processor in time is no reason to give up; several are.
      MOST_FAILURES = 3
      STEP_SECONDS = 0.05
      private_constant :COUNT, :LEAST, :MOST_SECONDS, :MOST_FAILURES, :STEP_SECONDS

      # @return [String, nil] a sentence on why there are no more looks
      attr_reader :problem

      # @param process [Diagnosis::ObservedProcess]
      # @param seconds [Float] of the watch
      # @param samples [Boolean] whether the last look is to find what keeps the samples of the profile
      def initialize(process, seconds:, samples:)
        @process = process
        @seconds = seconds
        @samples = samples
        @looks = []
        @failures = 0
      end

      # Starts the next look, if it is due.
      #
      # @param elapsed [Float] seconds of the watch
      # @return [void]
      def start(elapsed)
        return if problem || @thread&.alive? || @looks.size >= COUNT
        return if elapsed < @seconds * @looks.size / (COUNT - 1)

        samples = @samples && elapsed >= @seconds
        @thread = Thread.new { look(samples) }
      end

      # @return [Boolean] whether more looks would tell growth
      def missing? = problem.nil? && @looks.size.between?(1, LEAST - 1)

      # Waits for the last look.
      #
      # @param interruption [Interruption] ends it
      # @return [void]
      def finish(interruption)
        sleep(STEP_SECONDS) while @thread&.alive? && !interruption.requested?
        @thread&.kill&.join
      end

      # @return [Retention::Growth, nil] nil: there are too few looks
      def growth = (@growth ||= Retention::Growth.new(@looks) if @looks.size >= LEAST)

      private

      def look(samples)
        at = Clock.now
        document = Retention::Reading.of_process(@process.pid, samples: samples)
        analysis = Retention::Analysis.new(document, name: @process.title)
        @looks << Retention::Growth::Look.new(at, analysis)
        stop("a look took #{analysis.cpu_seconds.round} s") if analysis.cpu_seconds > MOST_SECONDS
      rescue Error => e
        @failures += 1
        stop(e.message) if @failures == MOST_FAILURES
      end

      def stop(reason)
        @problem = "what keeps memory is not known: #{reason}"
      end
    end
  end
end
