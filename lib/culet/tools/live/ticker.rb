# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "history"
require_relative "state"

module Culet
  module Live
    # Takes moments at a fixed distance, and hands them to the history and to the recorder.
    class Ticker
      # @param sampler [#call] a moment, or nil once all processes have ended
      # @param recorder [Recorder, nil]
      # @param every_seconds [Float] from one moment to the next
      def initialize(sampler, history:, every_seconds:, recorder: nil)
        @sampler = sampler
        @history = history
        @recorder = recorder
        @every = every_seconds
        @encoder = Encoder.new
        @states = State::Series.new
        @state = nil
      end

      # Takes the first moment.
      #
      # @return [Boolean] false: all processes have ended
      def begin
        @due = Clock.now + @every
        take
      end

      # Takes moments until all processes have ended, or it is stopped.
      #
      # @yieldparam seconds [Float] how long to wait at most
      # @yieldreturn [Boolean] whether to stop
      def follow
        until yield([@due - Clock.now, 0].max)
          next if @due > Clock.now

          # After a pause of the machine no moments are made up for.
          @due = [@due + @every, Clock.now].max
          take or break
        end
      end

      private

      def take
        moment = @sampler.call or return false
        state = @states.call(moment)
        # The clock may be set back, the axis of time may not.
        state["at"] = [state["at"], @state["at"]].max if @state
        @state = state
        frame = @encoder.call(state, moment.fetch("events"))
        @history.add(frame)
        @recorder&.add(frame)
        true
      end
    end
  end
end
