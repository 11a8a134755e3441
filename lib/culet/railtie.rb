# frozen_string_literal: true

require "active_support"
require "active_support/ordered_options"
require "rails/railtie"

module Culet
  # In a Rails application, `config.culet.trim = true` returns free memory after major garbage collections (culet/auto,
  # configured by CULET_TRIM). The default is false. `require "culet"` loads this file if Rails is loaded, so the
  # Gemfile must list rails first.
  class Railtie < ::Rails::Railtie
    config.culet = ActiveSupport::OrderedOptions.new
    config.culet.trim = false

    # After the environment files and the initializers, which may set it.
    config.after_initialize do |application|
      require_relative "auto" if application.config.culet.trim
    end
  end
end
