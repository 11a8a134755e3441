# frozen_string_literal: true

# PORT on 127.0.0.1, two workers; INTERVAL between restarts.
listen "127.0.0.1:#{ENV.fetch("PORT")}"
worker_processes 2
timeout 20
require "culet/pitchfork"
require "culet/limit"
Culet::Limit.restart_interval = Float(ENV.fetch("INTERVAL"))
Culet::Pitchfork.configure(self)
