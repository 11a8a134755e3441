# frozen_string_literal: true

# A small application of Rails, whose actions are those of PagesController.
ENV["RAILS_ENV"] = "production"
require "bundler/setup"
require "action_controller/railtie"

class Shop < Rails::Application
  config.root = __dir__
  config.load_defaults(7.2)
  config.eager_load = true
  config.secret_key_base = "for a server of the loopback interface that lives for some minutes"
  config.logger = ActiveSupport::Logger.new(File::NULL)
  config.hosts.clear
  config.public_file_server.enabled = false
end

Shop.initialize!
Shop.routes.draw do
  get "/up", to: ->(_) { [200, {}, ["up"]] }
  get "/orders", to: "pages#orders"
  get "/all", to: "pages#all"
end
