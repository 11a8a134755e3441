# frozen_string_literal: true

module Culet
  module Sidekiq
    # Sees when a Sidekiq process has nothing to do, and cleans up then: one full garbage collection, and what is free
    # goes back to the kernel. A period is quiet when no job ran between two heartbeats (ten seconds apart); there is
    # one cleaning for each period that follows work, so that an idle process stays idle.
    #
    # It happens in the thread of the heartbeat. A job that starts in the same moment waits for the collection as it
    # would for any other; the trim that follows holds up no Ruby thread.
    class QuietPeriods
      # Counts a job while it runs. Sidekiq makes one for each job.
      class Middleware
        # @param periods [QuietPeriods]
        def initialize(periods)
          @periods = periods
        end

        def call(_job, _message, _queue, &block) = @periods.during_job(&block)
      end

      def initialize
        @lock = Mutex.new
        @running = 0
        @worked = false # since the last heartbeat
        @untidy = false # since the last cleaning
      end

      # @return [Object] what the block returns
      def during_job
        change(+1)
        yield
      ensure
        change(-1)
      end

      # Called at every heartbeat.
      #
      # @return [Integer, nil] bytes given back; nil where it is no time for it
      def beat
        return unless begins?

        GC.start
        Culet.trim
      end

      private

      def change(by)
        @lock.synchronize do
          @running += by
          @worked = @untidy = true
        end
      end

      # @return [Boolean] whether a quiet period that follows work has begun
      def begins?
        @lock.synchronize do
          quiet = @running.zero? && !@worked
          @worked = false
          return false unless quiet && @untidy

          @untidy = false
          true
        end
      end
    end
  end
end
