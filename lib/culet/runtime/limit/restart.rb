# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "request_throttle"
require_relative "steps"

module Culet
  module Limit
    module Steps
      # Ends this process, or one of its workers, at a boundary. The usage must have been above the critical level for
      # `settle` seconds, in which the earlier steps of this process and of others in the group take effect; a quarter
      # of the time is enough above the level at which requests wait (RequestThrottle). Two restarts are at least
      # `interval` seconds apart.
      class Restart < Step
        URGENT = RequestThrottle::LEVEL
        # @return [Numeric] seconds
        attr_accessor :interval

        # @param critical [Float] share of the limit
        # @param settle [Numeric] seconds
        # @param interval [Numeric] seconds
        # @param restart [#call] restarts, and returns a detail for the log, or :nothing
        def initialize(restart, critical:, settle:, interval:)
          super("restart")
          @restart = restart
          @critical = critical
          @settle = settle
          @interval = interval
          @last = -Float::INFINITY
          @above_since = nil
        end

        def due?(used_share)
          @above_since = used_share >= @critical ? @above_since || Clock.now : nil
          return false unless @above_since && Clock.now - @last >= @interval

          Clock.now - @above_since >= (used_share >= URGENT ? @settle / 4.0 : @settle)
        end

        # @return [void]
        def relieved = @above_since = nil

        def frees? = false

        # @return [String, Symbol]
        def call
          @restart.call.tap { |detail| @last = Clock.now unless detail == :nothing }
        end
      end
    end
  end
end
