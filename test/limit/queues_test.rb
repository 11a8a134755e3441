# frozen_string_literal: true

require "limit/limit_helper"
require "limit/journal"
require "limit/queues/postgres_server"
require "servers/server_helper"
require "yaml"

# Solid Queue and GoodJob whose jobs leak, in a Rails application and real control groups.
class LimitQueuesTest < Minitest::Test
  include LimitHelper
  include ServerHelper
  include Journal

  FOLDER = File.expand_path("queues", __dir__)
  JOBS = 120
  WORKER = /^culet: limit .+: restart \(worker (\d+) with [\d.]+ MB of private memory takes no more jobs/
  PROCESS = /^culet: limit .+: restart \(this process takes no more jobs, and ends when the running ones are done\)/

  def setup
    skip "Rails and PostgreSQL: bin/test --all runs it" unless all_tests?
    skip "there is no PostgreSQL; install the Debian package postgresql" unless PostgresServer.programs
    @directory = new_folder
    File.chmod(0o755, @directory) # PostgreSQL is another user
    @postgres = PostgresServer.new(FileUtils.mkdir_p(File.join(@directory, "postgres")).first)
  end

  def teardown = @postgres&.stop

  def test_workers_of_solid_queue_end_and_are_replaced
    check_cluster(solid_queue, 280, "ruby", "jobs.rb")
  end

  def test_a_solid_queue_of_threads_ends
    check_process(solid_queue, "ruby", "jobs.rb", "--mode", "async")
  end

  def test_a_process_of_good_job_ends
    check_process(good_job, "good_job", "start", "--threads", "2")
  end

  def test_subprocesses_of_good_job_end_and_are_replaced
    check_cluster(good_job, 280, "good_job", "start", "--threads", "2", "--subprocesses", "2")
  end

  private

  def bundle = super("queues/Gemfile")

  def solid_queue = prepare("solid_queue")

  def good_job = prepare("good_job")

  # @return [Hash{String => String}] environment
  def prepare(adapter)
    settings = { "production" => @postgres.settings.merge("pool" => 10) }
    File.write(File.join(@directory, "database.yml"), YAML.dump(settings))
    env = { "ADAPTER" => adapter, "FOLDER" => @directory, "JOURNAL" => journal, "BYTES" => "2000000", "INTERVAL" => "2",
            "JOBS" => JOBS.to_s, "RAILS_ENV" => "production", "SOLID_QUEUE_CONFIG" => File.join(FOLDER, "queue.yml") }
    assert_program("ruby", "#{FOLDER}/setup.rb", env: env)
    env
  end

  # Its supervisor starts a process for each that ends.
  def check_cluster(env, mebibytes, *command)
    in_group(env, mebibytes, *command) do |server|
      assert_settles(-> { "all jobs end: #{ended.size}, #{server.output}" }, seconds: 300) { ended.size >= JOBS }
      assert_operator server.output.scan(WORKER).size, :>=, 2, server.output
      assert_equal server.output.scan(WORKER).uniq, server.output.scan(WORKER), "each worker once"
      assert_predicate server, :alive?
    end
    assert_each_job_once(JOBS)
  end

  # This test is its process manager.
  def check_process(env, *command)
    in_group(env, 200, *command) do |server|
      assert_settles(-> { "it ends by itself: #{server.output}" }) { !server.alive? }
      assert_match PROCESS, server.output
    end
    assert_operator ended.size, :<, JOBS
    in_group(env.merge("BYTES" => "0"), 400, *command) do |server|
      assert_settles(-> { "all jobs end: #{ended.size}, #{server.output}" }, seconds: 300) { ended.size >= JOBS }
    end
    assert_each_job_once(JOBS)
  end

  def in_group(env, mebibytes, *command, &block)
    in_application = ["sh", "-c", 'cd "$0" && exec "$@"', FOLDER]
    with_limited_server(mebibytes, *in_application, *command, env: env, up: started, &block)
  end
end
