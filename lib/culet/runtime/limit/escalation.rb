# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # Takes the steps in their order, each only if those before did not suffice. After a pass that did not suffice the
    # next waits, longer each time, unless more is in use than then.
    class Escalation
      # Pauses after a pass, in seconds. The last is for a usage above the critical level.
      SHORTEST = 0.25
      LONGEST = 30.0
      CRITICAL_LONGEST = 0.25
      # Shares of the limit: a pass begins above the first and ends below it; more use by the last is a change.
      ALARM = 0.85
      CRITICAL = 0.93
      CHANGE = 0.03

      # @param used [#call] bytes in use, or nil
      # @param limit [#call] bytes
      # @param own [#call] bytes of this process alone, by which the steps are judged
      def initialize(steps, history:, used:, limit:, own: used)
        @steps = steps
        @history = history
        @used = used
        @limit = limit
        @own = own
        @pause = SHORTEST
        @reached = 0
      end

      # One pass.
      #
      # @return [Float] seconds until the next may begin
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

      # Between two passes: steps that undo what they did are told that the usage is below the alarm level.
      def relieve
        return unless @steps.any?(&:pending?)

        used = @used.call
        rest if used && used < ALARM * @limit.call
      end

      # @return [Integer] bytes in use from which the next pass is to begin before its time
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
