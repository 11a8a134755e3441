# frozen_string_literal: true

require_relative "middleware"

module Culet
  module Sidekiq
    # Collects garbage and trims once in each quiet period of a Sidekiq process. A period is quiet when no job ran
    # between two heartbeats (ten seconds apart); an idle process stays idle.
    #
    # It runs in the heartbeat thread. A job that starts meanwhile waits for the collection, but not for the trim.
    class QuietPeriods
      def initialize
        @lock = Mutex.new
        @running = 0
        @worked = false # since the last heartbeat
        @untrimmed = false # whether a job ran since the last trim
      end

      # @return [Object] the block's value
      def during_job
        change(+1)
        yield
      ensure
        change(-1)
      end

      # Called at every heartbeat.
      #
      # @return [Integer, nil] bytes returned; nil when no quiet period has begun
      def beat
        return unless begins?

        GC.start
        Culet.trim
      end

      private

      def change(by)
        @lock.synchronize do
          @running += by
          @worked = @untrimmed = true
        end
      end

      # @return [Boolean] whether a quiet period that follows work has begun
      def begins?
        @lock.synchronize do
          quiet = @running.zero? && !@worked
          @worked = false
          return false unless quiet && @untrimmed

          @untrimmed = false
          true
        end
      end
    end
  end
end
