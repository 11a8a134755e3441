# frozen_string_literal: true

require "harness"
use_gemfile
require "rubocop"

# The sources of a gem whose version the lockfile holds.
FILES = Dir[File.join(Gem.loaded_specs.fetch("sequel").full_gem_path, "lib/sequel/adapters/{jdbc,odbc,shared}/*.rb")].sort.first(12)
abort "there are no sources of sequel" if FILES.empty?

File.write(".rubocop.yml", "AllCops:\n  NewCops: enable\n  SuggestExtensions: false\n  TargetRubyVersion: 2.7\n")
run_benchmark(1) do
  RuboCop::CLI.new.run(["--cache", "false", "--config", ".rubocop.yml", "--format", "quiet", "--out", "offenses", *FILES])
end
