# frozen_string_literal: true

# Lets a Ruby process use the gems of packaging/Gemfile.
folder = File.expand_path("../.gems/packaging/#{RUBY_ENGINE}/#{RbConfig::CONFIG["ruby_version"]}", __dir__)
Gem.use_paths(Gem.dir, [*Dir[folder], *Gem.path])
