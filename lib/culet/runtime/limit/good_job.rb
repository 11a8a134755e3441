# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "worker"

module Culet
  module Limit
    # A GoodJob that keeps its memory limit: it takes no more jobs, finishes those it has and ends, so that its process
    # manager starts it again. With subprocesses, the one with the most private memory ends, and the supervisor starts
    # another one.
    module GoodJob
      class << self
        # In a process that executes a job. In a web server (execution mode async) the server decides.
        def begin_process
          return unless ::GoodJob::CLI.within_exe?
          return Worker.begin(Worker::AFTER_JOBS) { finish } if subprocess?

          Limit.restarts_by { Worker.finish("this process #{Worker::AFTER_JOBS}") { finish } }
        end

        private

        def subprocess?
          configuration = ::GoodJob.configuration
          configuration.respond_to?(:cluster?) && configuration.cluster?
        end

        def finish
          BackgroundThread.start("culet-limit-end") do
            ::GoodJob.shutdown(timeout: Worker::PATIENCE) # which interrupts jobs that take longer
            ::Process.kill(:TERM, ::Process.pid)
          end
        end
      end
    end
  end
end
