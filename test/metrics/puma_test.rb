# frozen_string_literal: true

require "servers/server_helper"
require_relative "metrics_helper"

# The metrics of real Pumas: the newest, and with --all those of the years before.
module PumaMetricsTests
  include ServerHelper
  include MetricsHelper

  def test_the_master_serves_all_processes
    with_puma("WORKERS" => "2", "PRELOAD" => "1") do |server, port|
      samples = settled(port, 3)
      by_worker = select(samples, "process_resident_memory_bytes").to_h { |one| one.labels.values_at("worker", "pid") }
      assert_equal %w[0 1 master], by_worker.keys.sort
      assert_equal server.pid.to_s, by_worker["master"]
      by_worker.each_value { |pid| assert_operator value(samples, "ruby_gc_heap_slots", pid: pid, state: "live"), :>, 10_000 }
      assert_equal 1, select(samples, "culet_memory_pressure_seconds_total", kind: "some").size if File.exist?("/proc/pressure/memory")
      sharing(port, by_worker.values)
    end
  end

  def test_a_killed_worker_is_gone_and_its_successor_there
    with_puma("WORKERS" => "2", "PRELOAD" => "1") do |_, port|
      victim = select(settled(port, 3), "process_threads", worker: "0").first.labels["pid"]
      Process.kill(:KILL, victim.to_i)
      refute_includes pids(parse(get(port).body)), victim
      successor = assert_settles("another worker 0") { select(parse(get(port).body), "ruby_gc_collections_total", worker: "0", type: "major").first }
      refute_equal victim, successor.labels["pid"]
    end
  end

  # With the middleware, any worker has the text of the master.
  def test_a_worker_serves_all_processes
    with_puma("WORKERS" => "2", "WITHOUT_PORT" => "1") do |server, _|
      assert_settles("all processes") { pids(parse(server.get("/metrics"))).size == 3 }
    end
  end

  def test_workers_that_are_forked_by_a_worker
    with_puma("WORKERS" => "2", "FORK_WORKER" => "1") do |server, port|
      before = pids(settled(port, 3))
      Process.kill(:URG, server.pid)
      samples = assert_settles("a worker of the next generation") do
        found = parse(get(port).body)
        found if (pids(found) - before).any? && pids(found).size == 3 && select(found, "process_threads").filter_map { |one| one.labels["worker"] }.sort == %w[0 1 master]
      end
      assert_equal 3, pids(samples).size
    end
  end

  def test_a_single_process
    with_puma do |server, port|
      samples = settled(port, 1)
      assert_equal [server.pid.to_s], pids(samples)
      assert_empty samples.filter_map { |one| one.labels["worker"] }
      assert_equal [server.pid.to_s], pids(parse(server.get("/metrics")))
    end
  end

  def test_a_hot_restart_takes_the_port_over
    with_puma do |server, port|
      before = value(settled(port, 1), "ruby_gc_allocated_objects_total")
      Process.kill(:USR2, server.pid)
      assert_settles("the new program") { after_restart(port, before) }
    end
  end

  # Its figures may be late, those of the kernel are not, and the request is served.
  def test_a_worker_whose_gvl_is_held_is_shown
    with_puma("WORKERS" => "2") do |server, port|
      settled(port, 3)
      request = Thread.new { server.get("/busy") }
      found = Array.new(3) { found_pids(port).size }
      assert_equal [3, 3, 3], found
      assert_includes found_pids(port), request.value
    end
  end

  private

  def with_puma(env = {})
    port = free_port
    env = { "CULET_METRICS" => port.to_s }.merge(env) unless env["WITHOUT_PORT"]
    with_server("puma", "-C", File.expand_path("puma.rb", __dir__), File.expand_path("application.ru", __dir__),
                env: env, gems: bundle(self.class::GEMFILE)) do |server|
      yield server, port
      assert_empty server.output.scan(/^.*(?:warn|error|culet:).*$/i)
    end
  end

  # @return [Array<MetricsHelper::Sample>] once so many processes have reported
  def settled(port, count)
    assert_settles("#{count} processes") do
      samples = parse(get(port).body)
      samples if select(samples, "ruby_gc_collections_total", type: "major").size == count
    end
  end

  def found_pids(port) = pids(parse(get(port).body))

  # Each process's page tables are walked in turn.
  def sharing(port, processes)
    found = {}
    assert_settles("what they share") do
      select(parse(get(port).body), "culet_process_copy_on_write_shared_ratio").each { |one| found[one.labels["pid"]] = one.value }
      found.size == processes.size
    end
    found.each_value { |ratio| assert_operator ratio, :>, 0.2 }
  end

  def after_restart(port, before)
    value(parse(get(port).body), "ruby_gc_allocated_objects_total") != before && found_pids(port).size == 1
  rescue SystemCallError, EOFError
    false
  end
end

class PumaMetricsTest < Minitest::Test
  include PumaMetricsTests

  GEMFILE = "Gemfile"
end

ServerHelper.each_older_puma(PumaMetricsTests, "MetricsTest")
