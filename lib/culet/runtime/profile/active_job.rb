# frozen_string_literal: true

module Culet
  module Profile
    # `include Culet::Profile::ActiveJob` in a job or in ApplicationJob: its allocations have the label job, the name
    # of its class.
    module ActiveJob
      # @return [Object] the value of the job
      def perform_now = Profile.label(job: self.class.name) { super }
    end
  end
end
