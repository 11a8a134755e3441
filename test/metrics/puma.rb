# frozen_string_literal: true

# Puma as the tests of metrics ask for it: PORT on 127.0.0.1; WORKERS, 0 for a single process; FORK_WORKER; SITES of the profile. The application
# has the middleware.

require "culet/metrics" if ENV["WITHOUT_PORT"]
if ENV["SITES"]
  require "culet/profile"
  require "culet/metrics"
  Culet::Metrics.sites = Integer(ENV["SITES"])
end

threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers Integer(ENV.fetch("WORKERS", "0"))
preload_app!(ENV["PRELOAD"] == "1")
fork_worker if ENV["FORK_WORKER"]
plugin :culet
