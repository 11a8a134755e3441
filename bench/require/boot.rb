# frozen_string_literal: true

# Boots the application of the working directory and prints its figures as JSON.
#
#   ruby boot.rb APPLICATION BOOTSNAP    BOOTSNAP: none, paths (its load-path cache) or code (its compile cache)

require "json"

application, bootsnap = ARGV

# As an application's config/boot.rb does, with a cache for each kind.
unless bootsnap == "none"
  require "bundler/setup"
  require "bootsnap"
  code = bootsnap == "code"
  Bootsnap.setup(cache_dir: File.join(ENV.fetch("MEASURED_CACHE"), bootsnap), development_mode: false,
                 load_path_cache: !code, compile_cache_iseq: code, compile_cache_yaml: code)
end

require application

rollup = File.read("/proc/self/smaps_rollup")
times = Process.times
figures = { "cpu_seconds" => times.utime + times.stime, "rss_bytes" => rollup[/^Rss:\s+(\d+)/, 1].to_i << 10,
            "private_dirty_bytes" => rollup[/^Private_Dirty:\s+(\d+)/, 1].to_i << 10,
            "features" => $LOADED_FEATURES.size, "load_path" => $LOAD_PATH.size }
puts JSON.generate(figures)
