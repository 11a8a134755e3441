# frozen_string_literal: true

require "harness"
use_gemfile
require "rubocop"

# The sources of a gem whose version the lockfile holds.
FILES = Dir.glob("lib/sequel/adapters/{jdbc,odbc,shared}/*.rb", base: Gem.loaded_specs.fetch("sequel").full_gem_path)
           .sort.first(5).map { |name| File.join(Gem.loaded_specs.fetch("sequel").full_gem_path, name) }
abort "there are no sources of sequel" if FILES.empty?

File.write(".rubocop.yml", "AllCops:\n  NewCops: enable\n  SuggestExtensions: false\n  TargetRubyVersion: 2.7\n")
OPTIONS = %w[--cache false --config .rubocop.yml --format quiet --out offenses].freeze
run_benchmark(1) { RuboCop::CLI.new.run(OPTIONS + FILES) }
