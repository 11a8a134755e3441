# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # Keeps the memory limit of Pitchfork: the worker with the most private memory ends after a request, and Pitchfork's
    # monitor starts a new worker.
    module Pitchfork
      class << self
        # Called at the start of a worker.
        def begin_worker = Worker.begin("ends after its next request")

        # Called after each request of a worker.
        def after_request
          exit if Limit.each_boundary
          Limit.throttle.pass
        end
      end
    end
  end
end
