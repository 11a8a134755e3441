# frozen_string_literal: true

require "servers/server_helper"
require_relative "redis_server"

# culet/sidekiq in a real Sidekiq with a real Redis.
class SidekiqTest < Minitest::Test
  include ServerHelper
  include RedisServer::Tests

  JOBS = File.expand_path("jobs.rb", __dir__)

  def test_what_jobs_leave_goes_back_in_quiet_periods
    check_quiet_periods(1)
  end

  def test_with_the_heartbeat_as_it_is
    skip "a minute: bin/test --all runs it" unless all_tests?
    check_quiet_periods(10)
  end

  # The limit is below what it needs.
  def test_at_its_memory_limit_it_finishes_its_jobs_and_ends
    up = ->(_server) { File.exist?(File.join(@directory, "figures")) }
    with_server("sidekiq", "-r", JOBS, "-c", "2", "-t", "5", env: settings.merge("CULET_LIMIT" => "20M"), up: up) do |server|
      assert_settles(-> { "it ends by itself: #{server.output}" }) { !server.alive? }
      assert_match(/^culet: the memory limit, 20 MiB, is nearly used up at the start: /, server.output)
      assert_match(/^culet: limit 20 MiB: restart \(this process accepts no more jobs, and ends when the running ones are done\)/, server.output)
      assert_match(/TSTP|no longer accepting new work/, server.output)
    end
  end

  def test_a_client_is_left_as_it_is
    out, err = assert_success(RbConfig.ruby, "-rbundler/setup", "-r#{JOBS}", "-e", "p Sidekiq.server?, defined?(Culet::Trim)",
                              env: environment(bundle).merge(settings))
    assert_equal ["nil\nnil\n", ""], [out, err]
  end

  private

  # @param beat [Numeric] seconds between two heartbeats
  def check_quiet_periods(beat)
    with_sidekiq("BEAT_SECONDS" => beat.to_s) do
      2.times do |round|
        enqueue(4)
        tidy = assert_settles(-> { "the quiet period is used: #{figures}" }, seconds: 60) { after_quiet_period(4 * (round + 1)) }
        sleep(2.5 * beat)
        assert_equal tidy["now"]["majors"], figures["now"]["majors"], "an idle process stays idle"
      end
    end
  end

  # @return [Hash, nil] figures, once so many jobs have ended, a collection followed and memory went back
  def after_quiet_period(jobs)
    seen = figures
    return unless seen["jobs"] == jobs

    now, ended = seen.values_at("now", "after_jobs")
    seen if now["majors"] > ended["majors"] && now["returned_bytes"] > ended["returned_bytes"] + (5 * ServerHelper::MEBIBYTE)
  end

  def settings = { "REDIS_URL" => @redis.url, "FIGURES" => File.join(@directory, "figures") }

  def with_sidekiq(env)
    up = ->(_server) { File.exist?(File.join(@directory, "figures")) }
    with_server("sidekiq", "-r", JOBS, "-c", "2", "-t", "5", env: settings.merge(env), up: up) do |server|
      assert figures["active"]
      yield
      assert_empty server.output.scan(/^.*(?:WARN|ERROR|culet:).*$/)
    end
  end

  def figures = JSON.parse(File.read(File.join(@directory, "figures")))

  # Jobs are asked for by another process, as a web server does it.
  def enqueue(count)
    assert_success(RbConfig.ruby, "-rbundler/setup", "-r#{JOBS}", "-e", "#{count}.times { WasteJob.perform_async }",
                   env: environment(bundle).merge(settings))
  end
end
