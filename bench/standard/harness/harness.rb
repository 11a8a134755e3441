# frozen_string_literal: true

# The methods that programs of ruby-bench expect of its harness, for these and for those of this folder. The work is a
# fixed number of iterations, so that it is the same under every allocator. STANDARD_ITERATIONS: that number instead of
# the program's own; STANDARD_PREPARE: install gems and fill databases, then end.

PREPARES = ENV.key?("STANDARD_PREPARE")
Random.srand(1)

def run_benchmark(iterations, **, &block)
  return if PREPARES

  Integer(ENV.fetch("STANDARD_ITERATIONS", iterations)).times { block.call }
end

# Uses the Gemfile of BUNDLE_GEMFILE or of the working directory, by this Bundler: the one that wrote the lockfile may
# not be had for this Ruby.
def use_gemfile(extra_setup_cmd: nil)
  require "bundler"
  ENV["BUNDLER_VERSION"] = Bundler::VERSION
  bundle = "#{Gem.ruby} -S bundle"
  setup_cmds(["#{bundle} check >/dev/null 2>&1 || #{bundle} install", *extra_setup_cmd])
  Bundler.setup
end

def setup_cmds(commands)
  return unless PREPARES

  commands.each { |command| system(command, out: :err) || abort("`#{command}` failed in #{Dir.pwd}") }
end

def make_shareable(object, copy: false) = Ractor.make_shareable(object, copy: copy)
