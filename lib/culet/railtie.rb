# frozen_string_literal: true

require_relative "native"
return if Culet::Native.another_copy?(__FILE__, "culet/railtie")

require "active_support"
require "active_support/ordered_options"
require "rails/railtie"

module Culet
  # In a Rails application, `config.culet.trim = true` returns free memory after major garbage collections (culet/auto,
  # configured by CULET_TRIM). `config.culet.profile = true` loads culet/profile, and labels the allocations of requests
  # and jobs (Profile::Rails). `config.culet.limit = true`, or a limit such as "85%", loads culet/limit. With
  # that, or if the application has loaded it, Solid Queue, GoodJob and Resque restart at the limit (Limit::Jobs). The
  # default of all is false. With CULET_BLACKBOX, requests and jobs have labels too. `require "culet"` loads this file
  # when the application's class is defined.
  class Railtie < ::Rails::Railtie
    config.culet = ActiveSupport::OrderedOptions.new
    config.culet.trim = false
    config.culet.profile = false
    config.culet.limit = false

    # After the environment files and the initializers, which may set it.
    initializer "culet.profile", after: :load_config_initializers, before: :build_middleware_stack do |application|
      Native.load_entry("culet/profile") if application.config.culet.profile
      Native.load_entry("culet/blackbox") if ENV["CULET_BLACKBOX"]
      boxed = defined?(BlackBox.running?) && BlackBox.running?
      Profile::Rails.install(application) if application.config.culet.profile || boxed
    end

    # After the environment files and the initializers, which may set it.
    config.after_initialize do |application|
      Native.load_entry("culet/auto") if application.config.culet.trim
    end

    # After what the initializers registered by Culet::Limit.on.
    config.after_initialize do |application|
      if (limit = application.config.culet.limit)
        require_relative "runtime/limit/preset"
        Limit.preset = limit
        Native.load_entry("culet/limit")
      end
      next unless defined?(Limit::Monitor) && Limit.active?

      require_relative "runtime/limit/jobs"
      Limit::Jobs.install
    end
  end
end
