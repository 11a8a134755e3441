# frozen_string_literal: true

# says: one path of an application builds a large answer
# shape: Rack in Puma, threaded
# peak: 60
require_relative "../../load"
Load.client(%w[/export] + (%w[/page] * 120), every: 0.08, before: %w[/export])
require "bundler/setup"

APPLICATION = lambda do |environment|
  rows = environment["PATH_INFO"] == "/export" ? Load.texts(80) : [Load.work(1)] # HERE
  sleep(1.5) if rows.size > 1
  [200, { "content-type" => "text/plain" }, [rows.first]]
ensure
  GC.start if rows.size > 1
end
Load.puma(APPLICATION)
