# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "../../system/clock"
require_relative "../sidekiq/middleware"

module Culet
  module Limit
    # Keeps the memory limit of Sidekiq: the process accepts no more jobs (TSTP), finishes its running jobs and ends
    # (TERM), and its supervisor starts it again.
    class Sidekiq
      # Seconds without a job before the process ends: Sidekiq may have fetched a job that has not begun.
      QUIET = 1.0
      # Maximum wait for jobs in seconds; Sidekiq's own shutdown then pushes them back.
      PATIENCE = 600.0

      # @param config [Sidekiq::Config] of a server process
      def self.install(config)
        jobs = new
        config.server_middleware { |chain| chain.prepend(Culet::Sidekiq::Middleware, jobs) }
        Limit.restarts_by { jobs.finish }
      end

      # @param signal [#call] sends this process a signal
      def initialize(signal: ->(name) { ::Process.kill(name, ::Process.pid) })
        @signal = signal
        @lock = Mutex.new
        @running = 0
        @ended = Clock.now
      end

      # @return [Object] the block's value
      def during_job
        @lock.synchronize { @running += 1 }
        Limit.throttle.pass
        yield
      ensure
        @lock.synchronize do
          @running -= 1
          @ended = Clock.now
        end
        Limit.each_boundary
      end

      # @return [String, Symbol]
      def finish
        return :nothing if @finishing

        Limit.ending = ::Process.pid
        @signal.call(:TSTP)
        @finishing = BackgroundThread.start("culet-limit-end") { wait_and_end }
        "this process accepts no more jobs, and ends when the running ones are done"
      end

      private

      def wait_and_end
        deadline = Clock.now + PATIENCE
        began = Clock.now
        sleep(0.1) until quiet?(began) || Clock.now > deadline
        @signal.call(:TERM)
      end

      def quiet?(began) = @lock.synchronize { @running.zero? && Clock.now - [@ended, began].max >= QUIET }
    end
  end
end
