# frozen_string_literal: true

module Culet
  module Profile
    # Sidekiq server middleware: allocations of a job have the label job, the name of its class.
    #
    #   Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add Culet::Profile::Sidekiq } }
    class Sidekiq
      # @param message [Hash] the job; of a job of Active Job, "wrapped" is the name of its class
      # @return [Object] the value of the job
      def call(_job, message, _queue, &block) = Profile.label(job: message["wrapped"] || message["class"], &block)
    end
  end
end
