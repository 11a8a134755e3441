# frozen_string_literal: true

# Loaded into the servers with culet/auto: each of their processes tells at its end what its trims did.
# TRIM_FIGURES: a directory.

require "json"

at_exit { File.write(File.join(ENV.fetch("TRIM_FIGURES"), "#{Process.pid}.json"), JSON.generate(Culet.trim_stats)) }
