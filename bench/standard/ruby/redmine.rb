# frozen_string_literal: true

require "harness"
require_relative "../../redmine/rotation"

# Debian's package, with the pages of bench/redmine. STANDARD_REDMINE: another folder of it.
REDMINE = ENV.fetch("STANDARD_REDMINE", "/usr/share/redmine")
THREADS = 5
unless File.exist?("#{REDMINE}/config/environment.rb")
  abort "Debian's packages redmine and redmine-sqlite are not installed"
end

ENV.update("RAILS_ENV" => "production", "X_DEBIAN_SITEID" => "default")
Dir.chdir(REDMINE)
require "#{REDMINE}/config/environment"
# Five where the configuration of the package names none: this thread has one too.
configuration = ActiveRecord::Base.connection_db_config.configuration_hash
ActiveRecord::Base.establish_connection(configuration.merge(pool: THREADS + 1))
load File.expand_path("../../redmine/seed.rb", __dir__) if PREPARES
rotation = Rotation.new(Rails.application)

# A server of some threads, without the server.
run_benchmark(1) do
  Array.new(THREADS) do
    Thread.new do
      Thread.current.report_on_exception = false # join raises it: a failure is the first line of stderr
      20.times do
        status, _, body = rotation.call(Rack::MockRequest.env_for(Rotation::ADDRESS))
        raise "status #{status}" unless status == 200

        body.each(&:itself)
        body.close if body.respond_to?(:close)
      end
    end
  end.each(&:join)
end
