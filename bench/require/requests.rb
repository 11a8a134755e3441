# frozen_string_literal: true

# The program of bench/require/cost: boots the Rails application of the workloads and serves 1,000 requests, with the
# gems that `culet compare rails` installed.
#
#   culet requires --unused -- ruby bench/require/requests.rb
#   CULET_UNUSED_FROM=asked culet requires --unused -- ruby bench/require/requests.rb     without what ran at the boot
#   culet requires --html boot.html -- ruby bench/require/requests.rb 0
require "fileutils"

workload = File.expand_path("../../workloads/rails", __dir__)

# Begins again with the bundle's environment: what finds it must not be among what is looked at.
unless ENV["CULET_WORKLOAD_DIR"]
  require "tmpdir"
  require_relative "../../lib/culet/tools/compare/bundle"
  bundle = Culet::Compare::Bundle.new(name: "rails", gemfile: File.join(workload, "Gemfile"))
  abort "culet: the gems are not there yet; `culet compare rails --runs 1` installs them" unless bundle.installed?
  exec({ **bundle.environment, "CULET_WORKLOAD_DIR" => Dir.mktmpdir, "CULET_SCALE" => "0.1" }, RbConfig.ruby, __FILE__,
       *ARGV)
end

at_exit { FileUtils.rm_rf(ENV.fetch("CULET_WORKLOAD_DIR")) }
require "bundler/setup"
require "#{workload}/application"
require "rack/mock"
requests = Rack::MockRequest.new(Blog)
# The recorder of requires alone loads an extension that defines the module without this.
Culet::Unused.follow if defined?(Culet::Unused) && Culet::Unused.respond_to?(:follow)
Integer(ARGV.fetch(0, "1000")).times do
  status = requests.get("/", "HTTP_HOST" => "127.0.0.1").status
  raise "a request ended with #{status}" unless status < 400
end
