# frozen_string_literal: true

module Culet
  module Limit
    # Makes a boundary after each job that a queue executes by Active Job, and delays jobs near the limit. Jobs that a
    # program performs itself (perform_now) are not changed.
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

    # Keeps the memory limit of the queues that a Rails application has loaded.
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
