# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # Takes the steps in order until the usage is below the alarm level: one pass. The pauses between passes grow,
    # unless the usage rises.
    class Escalation
      # Pauses after a pass, in seconds; CRITICAL_LONGEST above the critical level.
      SHORTEST = 0.25
      LONGEST = 30.0
      CRITICAL_LONGEST = 0.25
      # Shares of the limit. A pass begins above ALARM and ends below it. A rise by CHANGE shortens the pause.
      ALARM = 0.85
      CRITICAL = 0.93
      CHANGE = 0.03

      # @param steps [Array<Steps::Step>]
      # @param history [History]
      # @param used [#call] bytes in use, or nil
      # @param limit [#call] bytes
      # @param own [#call] bytes of this process alone, which measure the effect of a step
      def initialize(steps, history:, used:, limit:, own: used)
        @steps = steps
        @history = history
        @used = used
        @limit = limit
        @own = own
        @pause = SHORTEST
        @reached = 0
      end

      # Makes one pass.
      #
      # @return [Float] seconds until the next pass
      def call
        @steps.each do |step|
          used = @used.call or return LONGEST
          due = step.due?(used.fdiv(@limit.call))
          return rest if used < ALARM * @limit.call

          take(step, used) if due
        end
        used = @used.call
        used && used >= ALARM * @limit.call ? pause(used) : rest
      end

      # Called between two passes: below the alarm level, steps such as Threads undo their changes.
      def relieve
        return unless @steps.any?(&:pending?)

        used = @used.call
        rest if used && used < ALARM * @limit.call
      end

      # @return [Integer] bytes in use that end the pause before the next pass
      def next_pass_bytes = [CRITICAL * @limit.call, @reached + (CHANGE * @limit.call)].min.to_i

      private

      def take(step, before)
        own = @own.call
        began = Clock.now
        detail = step.call
        return if detail == :nothing

        took = Clock.now - began
        used = @used.call || before
        limit = @limit.call
        freed = [own - (@own.call || own), 0].max if own && step.frees?
        step.freed(freed.to_i.fdiv(limit), used.fdiv(limit), took) if step.frees?
        @history.add(step.name, freed: freed, used: used, limit: limit, detail: detail)
      end

      def rest
        @steps.each(&:relieved)
        @pause = SHORTEST
        @reached = 0
        SHORTEST
      end

      def pause(used)
        longest = used >= CRITICAL * @limit.call ? CRITICAL_LONGEST : LONGEST
        @pause = used > @reached + (CHANGE * @limit.call) ? SHORTEST : [@pause * 2, longest].min
        @reached = [@reached, used].max
        @pause
      end
    end
  end
end
