# frozen_string_literal: true

# says: the parser of an application leaks in every request
# shape: Rack in Puma, threaded
# growth: 15
require_relative "../../load"
Load.client(%w[/parse /page], every: 0.04)
require "bundler/setup"
Load.leaking

APPLICATION = lambda do |environment|
  10.times { Leaking.parse(2_000) } if environment["PATH_INFO"] == "/parse" # HERE
  [200, { "content-type" => "text/plain" }, [Load.work(1)]]
end
Load.puma(APPLICATION)
