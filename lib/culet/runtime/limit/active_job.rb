# frozen_string_literal: true

module Culet
  module Limit
    # The boundaries of jobs that a queue executes by Active Job: near the limit, a job waits before it begins, and a
    # collection that waits is done after it. Jobs that a program performs itself (perform_now) are not changed.
    module ActiveJob
      # @yield in the process of each job, before its first job
      # @return [void]
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
  end
end
