# frozen_string_literal: true

module Culet
  module Limit
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
        require_relative "active_job"
        ActiveJob.install { GoodJob.begin_process if defined?(::GoodJob) }
      end
      private_class_method :find_boundaries
    end
  end
end
