# frozen_string_literal: true

# A Rails application of one file. CONFIGURED: what config.culet.trim is set to, by the application's configuration;
# INITIALIZED: likewise, in an initializer. Prints whether trims are on, and leaves.

require "action_controller/railtie"
require "culet"

class Application < Rails::Application
  config.root = ENV.fetch("APPLICATION_ROOT")
  config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
  config.eager_load = true
  config.secret_key_base = "for a process that lives for a second"
  config.logger = ActiveSupport::Logger.new(File::NULL)
  config.culet.trim = ENV["CONFIGURED"] == "true" if ENV.key?("CONFIGURED")
end

Application.initialize!
GC.start
puts [Application.config.culet.trim, $LOADED_FEATURES.any? { |file| file.end_with?("/culet/auto.rb") }, Culet.trim_stats[:mode]].inspect
