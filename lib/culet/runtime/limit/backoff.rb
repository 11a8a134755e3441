# frozen_string_literal: true

module Culet
  module Limit
    # When a step may be repeated. What freed next to nothing is repeated after pauses that double, up to minutes,
    # unless clearly more is in use than then: it costs time, and keeps others from the processor. The extension has
    # this rule for the steps of its thread (ext/culet/limit/backoff.h). All sizes are shares of the limit.
    class Backoff
      # Less is next to nothing; so much more in use is a reason to try again; so much less is another situation.
      FUTILE = 0.01
      MORE = 0.02
      LESS = 0.05
      # The shortest pause that is doubled, and the longest, in seconds.
      SHORTEST = 0.02
      LONGEST = 240.0

      def initialize
        @soonest = @next = @used = 0
        @futile = 0 # steps in a row that freed next to nothing
      end

      # @param time [Numeric] seconds
      # @param used [Numeric]
      # @return [Boolean]
      def due?(time, used)
        return false if time < @soonest
        return true if @futile.zero? || time >= @next

        @futile = 0 if used < @used - LESS
        used >= @used + MORE || @futile.zero?
      end

      # @param ended [Numeric] when the step ended
      # @param pause [Numeric] the least pause after it, in seconds
      # @param freed [Numeric]
      # @param used [Numeric] after it
      # @return [void]
      def note(ended:, pause:, freed:, used:)
        @futile = freed < FUTILE ? @futile + 1 : 0
        @soonest = ended + pause
        @next = ended + [[pause, SHORTEST].max * (2**[@futile, 32].min), LONGEST].min
        @used = used
      end
    end
  end
end
