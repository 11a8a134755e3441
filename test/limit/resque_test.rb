# frozen_string_literal: true

require "limit/limit_helper"
require "limit/journal"
require "servers/server_helper"
require "servers/sidekiq/redis_server"
require "culet/tools/autopsy"

# A real Resque whose worker leaks, in a real control group. This test is its process manager.
class LimitResqueTest < Minitest::Test
  include LimitHelper
  include ServerHelper
  include RedisServer::Tests
  include Journal

  RAKE = ["rake", "-f", File.expand_path("resque.rake", __dir__)].freeze
  JOBS = 120
  RESTART = /^culet: limit .+: restart \(worker \d+ with [\d.]+ MB of private memory ends after its job\)/

  def test_a_worker_that_leaks_ends_after_its_job
    check_worker
  end

  def test_a_worker_without_a_process_for_each_job
    check_worker("FORK_PER_JOB" => "false")
  end

  # The memory of a job goes with its process: a restart of the worker would free nothing.
  def test_a_large_job_does_not_restart_the_worker
    with_worker("JOB" => "LargeJob", "JOBS" => "1", "BYTES" => "0", "FORK_PER_JOB" => "true") do |server|
      assert_settles(-> { "the job ends: #{server.output}" }) { ended == [0] }
      assert_match(/collection \(/, server.output)
      refute_match(/restart \(/, server.output)
      assert_predicate server, :alive?
      server.stop(signal: "QUIT")
    end
  end

  # On a busy machine a job may end between the reading of the usage and the restart that is due.
  def test_a_worker_whose_usage_has_fallen_is_not_restarted
    with_real_group(150 * MEBIBYTE) do |folder|
      out, err, status = run_in_group(folder, "-rculet/limit", "-e", <<~RUBY)
        require "culet/runtime/limit/resque"
        trap("QUIT") { puts "restarted" }
        p Culet::Limit::Resque.send(:restart)
      RUBY
      assert_equal [":nothing\n", "", true], [out, err, status.success?]
    end
  end

  def test_jobs_have_labels_in_the_black_box
    env = environment_of("JOBS" => "1", "CULET_BLACKBOX" => @directory, "FORK_PER_JOB" => "false", "CULET_LIMIT" => "off")
    assert_program(*RAKE, "enqueue", env: env)
    with_server(*RAKE, "resque:work", env: env, up: started) do |server|
      assert_settles("a black box has the job") { labels.include?("job=LineJob") }
      server.stop(signal: "QUIT")
    end
  end

  private

  def labels
    Dir.glob("#{@directory}/*.blackbox").flat_map { |path| Culet::Autopsy::Box.load(path).events.map(&:label) }
  end

  def bundle = super("resque/Gemfile")

  def check_worker(**settings)
    with_worker("JOBS" => JOBS.to_s, **settings) do |server|
      assert_settles(-> { "it ends by itself: #{server.output}" }) { !server.alive? }
      assert_match RESTART, server.output
    end
    assert_operator ended.size, :<, JOBS
    # It also ends where Redis is late.
    assert_settles(-> { "all jobs end, not #{ended}" }) do
      assert_program(*RAKE, "resque:work", env: environment_of("INTERVAL" => "0", "BYTES" => "0"))
      ended.size >= JOBS
    end
    assert_each_job_once(JOBS)
  end

  def with_worker(**settings, &block)
    assert_program(*RAKE, "enqueue", env: environment_of(settings))
    with_limited_server(150, *RAKE, "resque:work", env: environment_of(settings), up: started, &block)
  end

  def environment_of(settings)
    { "REDIS_URL" => @redis.url, "JOURNAL" => journal, "QUEUE" => "*", "INTERVAL" => "0.1", "BYTES" => "3000000",
      "CULET_LIMIT" => "auto" }.merge(settings)
  end
end
