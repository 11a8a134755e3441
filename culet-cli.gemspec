# frozen_string_literal: true

require_relative "lib/culet/version"

# What the verbs of the command line print and draw with. The command itself is in culet, which needs none of it to
# serve a program: `culet run`, `env`, `lib`, and --json of the other verbs work without.
Gem::Specification.new do |spec|
  spec.name = "culet-cli"
  spec.version = Culet::VERSION
  spec.summary = "What the command line of culet prints its reports with"
  spec.description = "Install it where you run `culet report`, `culet top` and the other verbs. A server that runs " \
                     "on culet needs the gem culet alone, which depends on no other gem."
  spec.authors = ["The culet authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.homepage = Culet::HOMEPAGE
  spec.metadata = {
    "homepage_uri" => Culet::HOMEPAGE,
    "source_code_uri" => Culet::HOMEPAGE,
    "changelog_uri" => "#{Culet::HOMEPAGE}/blob/main/CHANGELOG.md",
    "bug_tracker_uri" => "#{Culet::HOMEPAGE}/issues",
    "rubygems_mfa_required" => "true"
  }
  spec.files = %w[LICENSE.txt lib/culet-cli.rb]

  spec.add_dependency "chunky_png", "~> 1.4"
  spec.add_dependency "culet", Culet::VERSION
  spec.add_dependency "mcp", "~> 1.9"
  spec.add_dependency "terminal-table", ">= 3.0", "< 5"
  spec.add_dependency "vega", ">= 0.4", "< 1"
  spec.add_dependency "webrick", "~> 1.8"
end
