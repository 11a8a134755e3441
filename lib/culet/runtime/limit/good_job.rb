# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "worker"

module Culet
  module Limit
    # A GoodJob that keeps its memory limit: it takes no more jobs, finishes those it has and ends, so that its process
    # manager starts it again. With subprocesses, the one with the most private memory ends, and the supervisor starts
    # another one.
    module GoodJob
      # Jobs that take longer are interrupted by GoodJob's own shutdown, in seconds.
      PATIENCE = 600
      ENDS = "takes no more jobs, and ends when those it has are done"
      private_constant :PATIENCE, :ENDS

      class << self
        # In a process that executes a job. In a web server (execution mode async) the server decides.
        def begin_process
          return unless ::GoodJob::CLI.within_exe?
          return Worker.begin(ENDS) { finish } if subprocess?

          Limit.restarts_by { Worker.finish("this process #{ENDS}") { finish } }
        end

        private

        def subprocess?
          configuration = ::GoodJob.configuration
          configuration.respond_to?(:cluster?) && configuration.cluster?
        end

        def finish
          BackgroundThread.start("culet-limit-end") do
            ::GoodJob.shutdown(timeout: PATIENCE)
            ::Process.kill(:TERM, ::Process.pid)
          end
        end
      end
    end
  end
end
