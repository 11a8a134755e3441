# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "worker"

module Culet
  module Limit
    # Keeps the memory limit of GoodJob: the process takes no more jobs, finishes its running jobs and ends, and the
    # process manager starts it again. With subprocesses, the one with the most private memory ends, and the supervisor
    # starts a new one.
    module GoodJob
      class << self
        # Called in a process that executes jobs. In execution mode async the web server restarts, by its own rules.
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
