# frozen_string_literal: true

require "limit/limit_helper"
require "etc"
require "servers/server_helper"

# Real Pumas that leak, in real control groups and with a limit for the sum of their PSS.
class LimitPumaTest < Minitest::Test
  include LimitHelper
  include ServerHelper

  COMMAND = ["puma", "-C", File.expand_path("puma.rb", __dir__), File.expand_path("leak.ru", __dir__)].freeze
  RESTART = /^culet: limit .+: restart \(worker (\d+) with [\d.]+ MB of private memory ends/

  def test_a_leaking_cluster_in_a_control_group_is_restarted_worker_by_worker
    check_cluster_in_a_group
  end

  # The processes of the cluster get a fraction of the time, so that a restart takes longer than the rest of the limit
  # would last.
  def test_a_leaking_cluster_on_a_busy_machine_is_restarted_in_time
    skip "half a minute of load: bin/test --all runs it" unless all_tests?
    with_load(3 * Etc.nprocessors) { check_cluster_in_a_group }
  end

  def test_a_leaking_cluster_with_a_setting_counts_the_sum_of_its_pss
    skip "half a minute: bin/test --all runs it" unless all_tests?
    with_server(*COMMAND, env: { "WORKERS" => "2", "INTERVAL" => "2", "BYTES" => "600000", "CULET_LIMIT" => "200M" }) do |server|
      check_cluster(server)
      document = JSON.parse(server.get("/status"))
      assert_equal [200 * MEBIBYTE, "setting"], document.values_at("limit_bytes", "source")
    end
  end

  def test_a_single_process_ends_by_itself_when_nothing_else_helps
    with_limited_server(150, *COMMAND, env: { "WORKERS" => "0", "INTERVAL" => "3", "BYTES" => "500000" }) do |server|
      begin
        500.times { server.get("/leak").then { sleep 0.03 } }
      rescue SystemCallError, EOFError
        nil # it has ended
      end
      assert_settles("the server ends") { !server.alive? }
      assert_match(/restart \(this process ends when its requests have ended\)/, server.output)
    end
  end

  # Puma 8 resizes its pool while it runs.
  def test_threads_are_taken_away_before_a_process_ends
    env = { "WORKERS" => "0", "INTERVAL" => "60", "BYTES" => "500000", "CULET_LIMIT" => "100M" }
    with_server(*COMMAND, env: env) do |server|
      at_once(server, "/", 3)
      assert_equal 3, pool(server)["max_threads"]
      assert_settles(-> { "fewer threads, not #{server.output}" }) do
        server.output.include?(": threads (3 to 1)") || fill(server, 0.91)
      end
      # Below the level again, so that no restart follows.
      server.get("/forget")
      assert_settles(-> { "two threads end: #{pool(server)}" }) { pool(server).values_at("max_threads", "running") == [1, 1] }
      refute_match(/restart \(/, server.output)
      check_threads_come_back(server) if all_tests?
    end
  end

  private

  def pool(server) = JSON.parse(server.get("/pool"))

  # Leaks until that share of the limit is in use: above the level at which threads are taken away, and below that of a
  # restart, however long the steps take.
  def fill(server, share)
    used, limit = JSON.parse(server.get("/status")).values_at("used_bytes", "limit_bytes")
    server.get("/leak") if used < share * limit
    nil
  end

  # Half a minute later.
  def check_threads_come_back(server)
    assert_settles(-> { "three threads again: #{server.output}" }) { pool(server)["max_threads"] == 3 }
    assert_match(/^culet: 3 threads again, after 1$/, server.output)
    at_once(server, "/", 3)
  end

  def check_cluster_in_a_group
    with_limited_server(200, *COMMAND, env: { "WORKERS" => "2", "INTERVAL" => "2", "BYTES" => "600000" }) { |server| check_cluster(server) }
  end

  def with_load(processes)
    pids = Array.new(processes) { Process.spawn(RbConfig.ruby, "--disable-gems", "-e", "loop {}") }
    yield
  ensure
    pids.each { |pid| Process.kill(:KILL, pid) }.each { |pid| Process.wait(pid) }
  end

  # Requests until two workers were restarted. None may fail.
  def check_cluster(server)
    requests = 0
    assert_settles(-> { "two restarts, not #{server.output}" }) do
      at_once(server, "/leak", 3).each { |body| assert_match(/\A\d+\z/, body) }
      requests += 3
      server.output.scan(RESTART).size >= 2
    end
    ended = server.output.scan(RESTART).flatten
    assert_equal ended.uniq, ended, "each worker once"
    assert_operator server.output.index("collection ("), :<, server.output.index("restart ("), "the steps before it"
    refute_match(/restart \(this/, server.output, "no process ends but a worker")
    assert server.alive?
    assert_operator requests, :>, 50
  end
end
