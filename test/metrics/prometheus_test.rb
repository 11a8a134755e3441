# frozen_string_literal: true

require "servers/server_helper"
require "culet/metrics"
require "culet/allocators"
require_relative "metrics_helper"
require_relative "prometheus_server"

# A real Prometheus scrapes a real Puma cluster; fleet/ fits it.
class PrometheusTest < Minitest::Test
  include ServerHelper
  include MetricsHelper

  FLEET = File.expand_path("../../fleet", __dir__)
  # Panels that need culet/limit in the server.
  LIMIT = /culet_limit/
  # In place of Grafana's variables.
  VARIABLES = { "$job" => "culet", "$instance" => ".*", "$__rate_interval" => "10s" }.freeze

  def test_the_rules_are_valid_and_fire_when_they_should
    promtool = program_or_skip("promtool")
    ["check rules #{FLEET}/alerts.yml", "check config #{FLEET}/prometheus.yml", "test rules #{__dir__}/alerts_test.yml"].each do |words|
      assert_success(promtool, *words.split, chdir: __dir__)
    end
    check_with_token(promtool)
    alerts = YAML.load_file("#{FLEET}/alerts.yml")["groups"].flat_map { |group| group["rules"] }.filter_map { |rule| rule["alert"] }
    tested = YAML.load_file("#{__dir__}/alerts_test.yml")["tests"].flat_map { |test| test["alert_rule_test"].to_a }
    assert_empty alerts - tested.select { |one| one["exp_alerts"] }.map { |one| one["alertname"] }, "each alert fires once"
    assert_empty alerts - tested.reject { |one| one["exp_alerts"] }.map { |one| one["alertname"] }, "and is silent once"
  end

  def test_it_scrapes_a_cluster
    with_prometheus do |prometheus, port|
      series = assert_settles("all processes", seconds: 60) do
        found = prometheus.query("ruby_gc_heap_slots{state=\"live\"}")
        found if found.size == 3
      end
      assert_equal %w[0 1 master], series.map { |one| one["metric"]["worker"] }.sort
      target = prometheus.get("/api/v1/targets").dig("data", "activeTargets", 0)
      assert_equal ["up", ""], target.values_at("health", "lastError")
      metadata = prometheus.get("/api/v1/metadata?metric=process_resident_memory_bytes")["data"]
      assert_equal "gauge", metadata["process_resident_memory_bytes"].first["type"]
      check_dashboard(prometheus)
      check_rules(prometheus)
      check_killed_worker(prometheus, port, series)
    end
  end

  # What Grafana requires of a dashboard's model.
  def test_the_dashboard_is_one
    dashboard = JSON.parse(File.read("#{FLEET}/dashboard.json"))
    assert_operator dashboard["schemaVersion"], :>=, 36
    assert_match(/\A[\w-]{1,40}\z/, dashboard["uid"])
    assert_nil dashboard["id"], "the server gives numbers"
    panels = dashboard["panels"]
    assert_equal panels.size, panels.map { |panel| panel["id"] }.uniq.size
    variables = dashboard["templating"]["list"].map { |one| one["name"] }
    assert_equal %w[datasource job instance], variables
    panels.each do |panel|
      assert_includes %w[timeseries stat table], panel["type"]
      assert_equal %w[defaults overrides], panel["fieldConfig"].keys
      assert_equal panel["targets"].size, panel["targets"].map { |target| target["refId"] }.uniq.size
      # Queries have the panel's.
      assert_equal({ "type" => "prometheus", "uid" => "${datasource}" }, panel["datasource"])
    end
    cells = panels.flat_map { |panel| cells_of(panel["gridPos"]) }
    assert_equal cells.size, cells.uniq.size, "panels overlap"
    assert_operator cells.map(&:first).max, :<, 24
  end

  def test_alerts_and_panels_use_metrics_that_exist
    text = File.read("#{FLEET}/dashboard.json") + File.read("#{FLEET}/alerts.yml")
    used = text.scan(/\b(?:culet|ruby|process)_[a-z_]+/).uniq.grep_v(/\Aculet_proportional_memory_bytes\z/)
    assert_operator used.size, :>, 15
    assert_empty used - Culet::Metrics::FAMILIES.keys
  end

  private

  # The lines for a token, which are comments.
  def check_with_token(promtool)
    text = File.read("#{FLEET}/prometheus.yml").gsub(/^(\s*)# (authorization:|  credentials_file:)/, '\1\2')
    Dir.mktmpdir do |folder|
      FileUtils.cp("#{FLEET}/alerts.yml", folder)
      File.write("#{folder}/token", "secret")
      File.write("#{folder}/prometheus.yml", text.sub("/run/secrets/metrics", "#{folder}/token"))
      assert_success(promtool, "check", "config", "#{folder}/prometheus.yml")
      assert_equal({ "credentials_file" => "#{folder}/token" }, YAML.load_file("#{folder}/prometheus.yml")["scrape_configs"].first["authorization"])
    end
  end

  def cells_of(grid)
    x, y, width, height = grid.values_at("x", "y", "w", "h")
    (x...(x + width)).to_a.product((y...(y + height)).to_a)
  end

  def with_prometheus
    program = program_or_skip("prometheus")
    port = free_port
    # With the profile, on culet's allocator: the panels of these have data.
    env = { "CULET_METRICS" => port.to_s, "WORKERS" => "2", "PRELOAD" => "1", "SITES" => "3", "CULET_PROFILE" => "16k",
            "LD_PRELOAD" => Culet::Allocators.culet_library }
    with_server("puma", "-C", File.expand_path("puma.rb", __dir__), File.expand_path("application.ru", __dir__), env: env) do
      Dir.mktmpdir do |directory|
        prometheus = PrometheusServer.new(program, directory, target: "127.0.0.1:#{port}", port: free_port)
        assert_settles(-> { "Prometheus: #{prometheus.log}" }) { prometheus.ready? }
        yield prometheus, port
      ensure
        prometheus&.stop
      end
    end
  end

  def check_dashboard(prometheus)
    queries = JSON.parse(File.read("#{FLEET}/dashboard.json"))["panels"].flat_map { |panel| panel["targets"].map { |target| target["expr"] } }
    assert_operator queries.size, :>, 15
    queries.each do |query|
      query = query.gsub(/\$\w+/, VARIABLES)
      next prometheus.query(query) if query.match?(LIMIT) || (query.include?("pressure") && !File.exist?("/proc/pressure/memory"))

      assert_settles("data for #{query}", seconds: 60) { prometheus.query(query).any? }
    end
  end

  def check_rules(prometheus)
    rules = prometheus.get("/api/v1/rules")["data"]["groups"].flat_map { |group| group["rules"] }
    assert_equal 11, rules.size
    rules.each { |rule| assert_equal ["ok", nil], [rule["health"], rule["lastError"]], rule["name"] }
    assert_settles("the recorded sum") { prometheus.query("job_instance:culet_proportional_memory_bytes:sum").any? }
  end

  # Gone at the next scrape, and not after Prometheus's five minutes.
  def check_killed_worker(prometheus, port, series)
    victim = series.find { |one| one["metric"]["worker"] == "1" }["metric"]["pid"]
    Process.kill(:KILL, victim.to_i)
    refute_includes pids(parse(get(port).body)), victim
    assert_settles("the worker is gone", seconds: 30) { prometheus.query("{pid=\"#{victim}\"}").empty? }
    assert_settles("its successor", seconds: 60) { prometheus.query("ruby_gc_heap_slots{worker=\"1\",state=\"live\"}").any? }
  end
end
