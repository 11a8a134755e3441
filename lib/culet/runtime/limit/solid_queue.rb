# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # Keeps the memory limit of Solid Queue: the supervisor's process with the most private memory takes no more jobs,
    # finishes its running jobs and ends (TERM), and the supervisor starts a new one. In mode async the supervisor
    # itself ends, unless it is a thread of Puma.
    module SolidQueue
      class << self
        # @return [void]
        def install
          hook(:on_start) { |supervisor = nil| begin_supervisor(supervisor) }
          %i[on_worker_start on_dispatcher_start on_scheduler_start].each do |name|
            hook(name) { |process = nil| begin_process(process) }
          end
        end

        private

        # Old versions of Solid Queue lack some hooks.
        def hook(name, &block)
          ::SolidQueue.public_send(name, &block) if ::SolidQueue.respond_to?(name)
        end

        def begin_supervisor(supervisor)
          return unless supervisor.respond_to?(:standalone?) && supervisor.standalone? && supervisor.mode.async?

          Limit.restarts_by { Worker.finish("this process #{Worker::AFTER_JOBS}") { finish } }
        end

        # In mode async a worker is a thread, which must not end the process of its supervisor.
        def begin_process(process)
          return if process.respond_to?(:supervisor) && process.supervisor&.pid == ::Process.pid

          Worker.begin(Worker::AFTER_JOBS) { finish }
        end

        # Solid Queue gives running jobs back to the queue after five seconds. A restart for the limit waits longer.
        def finish
          ::SolidQueue.shutdown_timeout = [::SolidQueue.shutdown_timeout, Worker::PATIENCE].max
          ::Process.kill(:TERM, ::Process.pid)
        end
      end
    end
  end
end
