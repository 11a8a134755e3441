# frozen_string_literal: true

module Culet
  module Profile
    # Sidekiq server middleware: what a job allocates has the label job, the name of its class.
    #
    #   Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add Culet::Profile::Sidekiq } }
    class Sidekiq
      # @param message [Hash] the job; of a job of Active Job, "wrapped" is the name of its class
      # @return [Object] what the job returns
      def call(_job, message, _queue, &block) = Profile.label(job: message["wrapped"] || message["class"], &block)
    end
  end
end
