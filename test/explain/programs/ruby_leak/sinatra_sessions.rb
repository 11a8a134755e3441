# frozen_string_literal: true

# says: sessions that never expire
# shape: Sinatra in Puma, threaded
# growth: 16
require_relative "../../load"
Load.client(%w[/login /page /page], every: 0.05)
require "bundler/setup"
require "sinatra/base"

class Shop < Sinatra::Base
  SESSIONS = {}
  set :environment, :production
  set :host_authorization, { permitted_hosts: [] }
  get("/up") { "up" }
  get("/page") { Load.work(1) }
  get("/login") do
    SESSIONS["session #{SESSIONS.size}"] = Array.new(40) { |item| "item #{item} ".ljust(900, "x") } # HERE
    "welcome"
  end
end
Load.puma(Shop)
