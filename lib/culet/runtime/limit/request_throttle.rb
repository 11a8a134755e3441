# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # Delays new requests and jobs while nearly the whole limit is in use, until a restart has freed memory. Delayed
    # requests are served later; requests of a process that the kernel kills are lost.
    class RequestThrottle
      # Share of the limit above which requests wait. The rest is for running requests.
      LEVEL = 0.95
      # Maximum delay in seconds. If the usage then stays the same, the program needs the memory, and requests wait
      # again only after growth by this share of the limit.
      SECONDS = 10.0
      GROWTH = 0.01
      # Seconds between two readings of the usage.
      PAUSE = 0.02
      private_constant :SECONDS, :GROWTH, :PAUSE

      # Rack middleware that delays requests.
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
      # @param full [#call] takes a number of bytes; whether as many are in use
      # @param ends [#call] whether this process is ending; its accepted requests then run without delay
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
