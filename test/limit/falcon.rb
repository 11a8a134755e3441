# frozen_string_literal: true

# PORT on 127.0.0.1, two workers; INTERVAL between restarts.
require "falcon/environment/rack"
require "culet/limit"
Culet::Limit.restart_interval = Float(ENV.fetch("INTERVAL"))

service "leak" do
  include Falcon::Environment::Rack

  count 2
  url { "http://127.0.0.1:#{ENV.fetch("PORT")}" }
  endpoint { Async::HTTP::Endpoint.parse(url) }
  rackup_path { File.expand_path("falcon.ru", root) }
end
