# frozen_string_literal: true

# Puma as the tests ask for it: PORT on 127.0.0.1; WORKERS, 0 for a single process; PRELOAD; FORK_WORKER; PLUGIN=0 without culet;
# WARM: addresses to be asked for before the fork.

threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers Integer(ENV.fetch("WORKERS", "0"))
preload_app!(ENV["PRELOAD"] == "1")
fork_worker if ENV["FORK_WORKER"]
if ENV["OWN_HOOKS"]
  out_of_band do
    $stdout.puts("out of band")
    $stdout.flush
  end
end
if ENV["OWN_HOOKS"] && ENV["WORKERS"]
  before_fork do
    $stdout.puts("own hook: #{WARMED.size} requests, #{GC.stat(:compact_count)} compactions")
    $stdout.flush
  end
end
plugin :culet unless ENV["PLUGIN"] == "0"
Culet::Warmup.requests = ENV["WARM"].split if ENV["WARM"]
