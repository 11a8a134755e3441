# frozen_string_literal: true

# PORT on 127.0.0.1; WORKERS, 0 for a single process; INTERVAL between restarts.
threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers Integer(ENV.fetch("WORKERS"))
preload_app!
plugin :culet
require "culet/limit"
Culet::Limit.restart_interval = Float(ENV.fetch("INTERVAL"))
