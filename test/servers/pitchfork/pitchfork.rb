# frozen_string_literal: true

# Pitchfork as the tests ask for it: PORT on 127.0.0.1, two workers; OWN_HOOKS with hooks of the file's own; WARM: addresses
# to be asked for before the fork.

listen "127.0.0.1:#{ENV.fetch("PORT")}"
worker_processes 2
timeout 20
if ENV["OWN_HOOKS"]
  after_mold_fork { |server, _mold| server.logger.info("own mold hook, #{GC.stat(:compact_count)} compactions, #{WARMED.size} requests") }
  after_request_complete { |server, _worker, _environment| server.logger.info("own request hook") }
end

require "culet/pitchfork"
Culet::Warmup.requests = ENV.fetch("WARM", "").split
Culet::Pitchfork.configure(self)
