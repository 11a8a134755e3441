# frozen_string_literal: true

module Culet
  module Limit
    # The boundaries of jobs that a queue executes by Active Job: near the limit, a job waits before it begins, and a
    # collection that waits is done after it. Jobs that a program performs itself (perform_now) are not changed.
    module ActiveJob
      # @yield in the process of each job, before its first job
      def self.install(&begin_process)
        began = nil
        ::ActiveJob::Callbacks.singleton_class.set_callback(:execute, :around, prepend: true) do |_, job|
          if began != ::Process.pid
            began = ::Process.pid
            begin_process&.call
          end
          Limit.throttle.pass
          job.call
        ensure
          Limit.each_boundary
        end
      end
    end

    # The queues that a Rails application has loaded: their processes end at the limit, and are started again.
    module Jobs
      # @return [void]
      def self.install
        if defined?(::SolidQueue)
          require_relative "solid_queue"
          SolidQueue.install
        end
        require_relative "good_job" if defined?(::GoodJob)
        Native.load_entry("culet/resque") if defined?(::Resque)
        queue = defined?(::SolidQueue) || defined?(::GoodJob) || defined?(::Resque)
        find_boundaries if queue && defined?(::ActiveJob)
      end

      def self.find_boundaries
        ActiveJob.install { GoodJob.begin_process if defined?(::GoodJob) }
      end
      private_class_method :find_boundaries
    end
  end
end
