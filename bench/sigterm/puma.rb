# frozen_string_literal: true

# Configuration for bench/sigterm/run. PORT: on 127.0.0.1; MEASURED_PLUGIN: 1 for culet's plugin; MEASURED_TIMEOUT:
# worker_shutdown_timeout in seconds.

workers 2
threads 3, 3
preload_app!
bind "tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}"
worker_shutdown_timeout Integer(ENV["MEASURED_TIMEOUT"]) if ENV["MEASURED_TIMEOUT"]
app { |_env| [200, { "content-type" => "text/plain" }, [Process.pid.to_s]] }
plugin :culet if ENV["MEASURED_PLUGIN"] == "1"
