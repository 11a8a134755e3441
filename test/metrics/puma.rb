# frozen_string_literal: true

# Puma as the tests of metrics ask for it: PORT on 127.0.0.1; WORKERS, 0 for a single process; FORK_WORKER. The application
# has the middleware.

require "culet/metrics" if ENV["WITHOUT_PORT"]

threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers Integer(ENV.fetch("WORKERS", "0"))
preload_app!(ENV["PRELOAD"] == "1")
fork_worker if ENV["FORK_WORKER"]
plugin :culet
