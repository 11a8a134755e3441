# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # A Pitchfork that keeps its memory limit: the worker with the most private memory ends after a request, and the
    # monitor starts another one.
    module Pitchfork
      class << self
        # In a worker, when it begins.
        def begin_worker = Worker.begin("ends after its next request")

        # In a worker, after a request.
        def after_request
          exit if Limit.each_boundary
          Limit.throttle.pass
        end
      end
    end
  end
end
