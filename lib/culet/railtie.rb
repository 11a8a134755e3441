# frozen_string_literal: true

require "active_support"
require "active_support/ordered_options"
require "rails/railtie"

module Culet
  # In a Rails application `config.culet.trim = true` gives memory back to the kernel after major garbage collections
  # (culet/auto, with its settings in CULET_TRIM). It is off unless asked for. `require "culet"` loads this where Rails
  # is loaded already, as it is when Bundler requires the gems of a Gemfile that names rails first.
  class Railtie < ::Rails::Railtie
    config.culet = ActiveSupport::OrderedOptions.new
    config.culet.trim = false

    # Once everything is configured, so that the environments' files and the initializers have their say.
    config.after_initialize do |application|
      require_relative "auto" if application.config.culet.trim
    end
  end
end
