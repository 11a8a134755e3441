# frozen_string_literal: true

# Loaded into the servers with culet/auto: each of their processes writes its trim statistics to the folder TRIM_FIGURES
# when it ends.

require "json"

at_exit { File.write(File.join(ENV.fetch("TRIM_FIGURES"), "#{Process.pid}.json"), JSON.generate(Culet.trim_stats)) }
