# frozen_string_literal: true

# Boots the Redmine of the working directory, and tells its features in the order in which they were loaded, culet's own
# left out.
#
#   ruby boot.rb TOLD [CACHE]    TOLD: the file to write; CACHE: bootsnap's, whose both caches are used then

told, cache = ARGV
ARGV.clear

# As its users do: behind bundler/setup and before everything else.
if cache
  require "bundler/setup"
  require "bootsnap"
  Bootsnap.setup(cache_dir: cache, development_mode: false, load_path_cache: true, compile_cache_iseq: true, compile_cache_yaml: true)
end

require "./config/environment"

features = $LOADED_FEATURES.reject { |path| path.start_with?(File.expand_path("../../lib", __dir__)) }
figures = Culet::Require.figures if defined?(Culet::Require)
File.binwrite(told, Marshal.dump([features, figures, Rails.autoloaders.main.class.name]))
