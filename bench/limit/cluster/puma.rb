# frozen_string_literal: true

# Two workers with CONTENDER, culet or worker_killer, in a control group of LIMIT bytes; INTERVAL seconds between looks
# or restarts.
threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers 2
preload_app!
if ENV.fetch("CONTENDER") == "culet"
  plugin :culet
  require "culet/limit"
  Culet::Limit.restart_interval = Float(ENV.fetch("INTERVAL"))
else
  before_fork do
    require "puma_worker_killer"
    PumaWorkerKiller.config do |config|
      config.ram = Integer(ENV.fetch("LIMIT")) >> 20
      config.frequency = Integer(ENV.fetch("INTERVAL"))
      config.percent_usage = 0.98
      config.rolling_restart_frequency = false
    end
    PumaWorkerKiller.start
  end
end
