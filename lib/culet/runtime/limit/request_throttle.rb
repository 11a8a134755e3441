# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # Holds requests and jobs back before they begin while nearly the whole limit is in use, so that a restart has the
    # time that it takes: a request that waits is not lost, one in a process that the kernel kills is.
    class RequestThrottle
      # Share of the limit. What is left is for the requests that have begun.
      LEVEL = 0.95
      # A program whose usage stays the same needs the memory, and does not leak: it is held back once, for so many
      # seconds, and again after a growth by this share of the limit.
      SECONDS = 10.0
      GROWTH = 0.01
      # Seconds between two looks.
      PAUSE = 0.02
      private_constant :SECONDS, :GROWTH, :PAUSE

      # A Rack middleware that holds requests back.
      class Rack
        def initialize(app)
          @app = app
        end

        # @param environment [Hash]
        # @return [Array]
        def call(environment)
          Limit.throttle.pass
          @app.call(environment)
        end
      end

      # @param limit [#call] bytes, or nil: no limit
      # @param full [#call] given a number of bytes, whether as many are in use
      # @param ends [#call] whether this process ends: then it is to finish what it has accepted
      def initialize(limit:, full:, ends:)
        @limit = limit
        @full = full
        @ends = ends
        @level = LEVEL
      end

      # @return [Float] seconds waited
      def pass
        limit = @limit.call
        return 0.0 unless limit && full?(limit)

        began = Clock.now
        sleep(PAUSE) while (waited = Clock.now - began) < SECONDS && full?(limit)
        raise_level(limit) if waited >= SECONDS
        waited
      end

      private

      def full?(limit)
        return true if @full.call((limit * @level).to_i) && !@ends.call

        @level = LEVEL if @level > LEVEL && !@full.call((limit * LEVEL).to_i)
        false
      end

      def raise_level(limit)
        @level += GROWTH while @level < 1 && @full.call((limit * @level).to_i)
      end
    end
  end
end
