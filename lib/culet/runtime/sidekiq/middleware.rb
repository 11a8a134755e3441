# frozen_string_literal: true

module Culet
  module Sidekiq
    # Middleware of a server for an object that counts running jobs; Sidekiq makes one instance for each job.
    Middleware = Struct.new(:jobs) do
      # @return [Object] the value of the job
      def call(_job, _message, _queue, &block) = jobs.during_job(&block)
    end
  end
end
