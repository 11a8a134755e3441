# frozen_string_literal: true

# A Rails application as `rails new` and a Gemfile make it. BEFORE: what is required before Rails, as by Puma or by the
# bundle of an application that calls Bundler.require first; AFTER: what Bundler.require requires behind Rails. Prints what
# config.culet did.

ENV["BEFORE"].to_s.split.each { |feature| require feature }
require "action_controller/railtie"
ENV["AFTER"].to_s.split.each { |feature| require feature }

class Application < Rails::Application
  config.root = ENV.fetch("APPLICATION_ROOT")
  config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
  config.eager_load = false
  config.secret_key_base = "for a process that lives for a second"
  config.logger = ActiveSupport::Logger.new(File::NULL)
  config.culet.profile = true
  config.culet.trim = true
  config.culet.limit = "9T"
end

Application.initialize!
copies = $LOADED_FEATURES.grep(%r{/culet/errors\.rb\z})
puts [Culet::Railtie.initializers.count { |initializer| initializer.name == "culet.profile" },
      Application.middleware.include?(Culet::Profile::Rack), Culet.trim_stats[:mode], Culet::Limit.status["limit_bytes"],
      copies.size].inspect
