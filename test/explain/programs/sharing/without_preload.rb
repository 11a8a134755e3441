# frozen_string_literal: true

# says: each worker of a cluster loads the application by itself
# shape: Rack in Puma, forked
# unshared: 40
require_relative "../../load"
Load.client(%w[/page], every: 0.05)
require "bundler/setup"

configuration = ->(settings) { settings.rackup(File.expand_path("../../large.ru", __dir__)) } # HERE
Load.puma(nil, workers: 3, threads: 2, preload: false, &configuration)
