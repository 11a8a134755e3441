# frozen_string_literal: true

# says: an application with three paths and a client library for everything
# shape: Sinatra in Puma, threaded
# code: 20
# loads: unused
require_relative "../../load"
Load.client(%w[/page], every: 0.1)
require "bundler/setup"
require "sinatra/base"

require_relative "../../large_sdk"
LargeSdk.load(24_000) # HERE

class Shop < Sinatra::Base
  set :environment, :production
  set :host_authorization, { permitted_hosts: [] }
  get("/up") { "up" }
  get("/page") { LargeSdk.call(2).to_s }
end
Load.puma(Shop)
