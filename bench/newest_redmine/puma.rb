# frozen_string_literal: true

# Puma as the measurement asks for it. MEASURED_MANNER: "single", one process of eight threads; "cluster", three forked
# workers of five threads; "warm", the same with a warm-up before the fork. PORT: on 127.0.0.1.
# MEASURED_PAGES: a file for what pages.rb sees just before the fork.

require_relative "../../workloads/rails/warmup"

manner = ENV.fetch("MEASURED_MANNER")
bind "tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}"
environment "production"
quiet

if manner == "single"
  workers 0
  threads 8, 8
else
  workers 3
  threads 5, 5
  preload_app!
  before_fork do
    ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
    Warmup.new.call if manner == "warm"
    if (file = ENV["MEASURED_PAGES"])
      system(RbConfig.ruby, File.join(__dir__, "pages.rb"), Process.pid.to_s, file, exception: true)
    end
  end
end
