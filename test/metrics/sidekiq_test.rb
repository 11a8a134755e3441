# frozen_string_literal: true

require "servers/server_helper"
require "servers/sidekiq/redis_server"
require_relative "metrics_helper"

# CULET_METRICS in a real Sidekiq with culet/sidekiq.
class SidekiqMetricsTest < Minitest::Test
  include ServerHelper
  include RedisServer::Tests
  include MetricsHelper

  JOBS = File.expand_path("../servers/sidekiq/jobs.rb", __dir__)

  def test_the_server_serves_its_metrics
    port = free_port
    env = { "REDIS_URL" => @redis.url, "FIGURES" => File.join(@directory, "figures"), "CULET_METRICS" => port.to_s }
    with_server("sidekiq", "-r", JOBS, "-c", "2", "-t", "5", env: env, up: ->(_) { File.exist?(env["FIGURES"]) }) do |server|
      samples = parse(get(port).body)
      assert_equal [server.pid.to_s], pids(samples)
      assert_operator value(samples, "ruby_gc_heap_slots", state: "live"), :>, 10_000
      assert_empty server.output.scan(/^.*(?:WARN|ERROR|culet:).*$/)
    end
  end
end
