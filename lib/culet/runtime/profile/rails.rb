# frozen_string_literal: true

module Culet
  module Profile
    # `config.culet.profile = true` in a Rails application: the allocations of a request have the label endpoint: the
    # controller and its action ("issues#index"), or before and without a controller the path (Profile::Rack). A job
    # has the label job (Profile::ActiveJob).
    module Rails
      # Included in ActionController::Base and ActionController::API.
      module Controller
        private

        # @return [Object] the value of the action
        def process_action(...) = Profile.label(endpoint: "#{controller_path}##{action_name}") { super }
      end

      # @param application [Rails::Application] before its middleware is built
      def self.install(application)
        application.config.middleware.unshift(Rack)
        ActiveSupport.on_load(:action_controller) { include Controller }
        ActiveSupport.on_load(:active_job) { include ActiveJob }
      end
    end
  end
end
