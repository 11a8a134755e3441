# frozen_string_literal: true

# Puma as bench/puma-term asks for it: PORT on 127.0.0.1, MEASURED_PLUGIN: 1 with culet's plugin; MEASURED_TIMEOUT: seconds
# after which the master kills a worker that does not end.

workers 2
threads 3, 3
preload_app!
bind "tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}"
worker_shutdown_timeout Integer(ENV["MEASURED_TIMEOUT"]) if ENV["MEASURED_TIMEOUT"]
app { |_env| [200, { "content-type" => "text/plain" }, [Process.pid.to_s]] }
plugin :culet if ENV["MEASURED_PLUGIN"] == "1"
