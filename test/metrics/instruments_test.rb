# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/bundle"
require "json"
require "socket"
require_relative "metrics_helper"

# The figures as instruments of other libraries, in programs of their own with the real gems.
class MetricsInstrumentsTest < Minitest::Test
  include MetricsHelper

  def test_without_any_of_the_libraries
    assert_equal "[]\n", run_ruby("p Culet::Metrics.instrument")
  end

  def test_opentelemetry
    found = JSON.parse(with_gems(<<~RUBY))
      require "json"
      ENV.update("OTEL_METRICS_EXPORTER" => "none", "OTEL_TRACES_EXPORTER" => "none", "OTEL_LOG_LEVEL" => "fatal")
      require "opentelemetry/sdk"
      require "opentelemetry-metrics-sdk"
      OpenTelemetry::SDK.configure
      exporter = OpenTelemetry::SDK::Metrics::Export::InMemoryMetricPullExporter.new
      OpenTelemetry.meter_provider.add_metric_reader(exporter)
      raise "not found" unless Culet::Metrics.instrument == [:OpenTelemetry]
      rounds = Array.new(3) do
        GC.start
        exporter.reset
        exporter.pull
        exporter.metric_snapshots.flatten.to_h do |metric|
          [metric.name, [metric.unit, metric.instrument_kind, metric.data_points.map { |point| [point.attributes, point.value] }]]
        end
      end
      puts JSON.generate([rounds.last, GC.stat(:major_gc_count), File.read("/proc/self/statm").split[1].to_i * 4096])
    RUBY
    metrics, majors, = found
    unit, kind, points = metrics.fetch("process.memory.usage")
    assert_equal ["By", "up_down_counter", 1], [unit, kind, points.size]
    assert_in_delta found.last, points.first.last, 0.2 * found.last
    unit, kind, points = metrics.fetch("ruby.gc.collections")
    assert_equal %w[1 counter], [unit, kind]
    assert_equal majors, points.to_h.transform_keys { |attributes| attributes["culet.type"] }.fetch("major")
    assert_equal %w[free live], metrics.fetch("ruby.gc.heap.slots").last.map { |attributes, _| attributes["culet.state"] }.sort
    assert_operator metrics.fetch("culet.memory.level").last.size, :>=, 4
  end

  def test_prometheus_client
    out = with_gems(<<~RUBY)
      require "prometheus/client"
      require "prometheus/client/formats/text"
      Prometheus::Client.registry.gauge(:own, docstring: "The application's.").set(7)
      2.times { raise "not found" unless Culet::Metrics.instrument == [:PrometheusClient] }
      GC.start
      print Prometheus::Client::Formats::Text.marshal(Prometheus::Client.registry)
    RUBY
    samples = parse(out)
    assert_equal 7, value(samples, "own")
    assert_operator value(samples, "process_resident_memory_bytes"), :>, 5_000_000
    assert_operator value(samples, "ruby_gc_heap_slots", state: "live"), :>, 10_000
    assert_operator value(samples, "ruby_gc_collections_total", type: "major"), :>=, 1
    return unless (promtool = program("promtool"))

    assert_equal "", run_program(promtool, "check", "metrics", stdin: out.lines.grep_v(/\bown\b/).join).first
  end

  def test_yabeda
    out = with_gems(<<~RUBY)
      require "yabeda"
      require "yabeda/prometheus"
      raise "not found" unless Culet::Metrics.instrument.include?(:Yabeda)
      Yabeda.configure!
      2.times { Yabeda.collect! }
      GC.start
      Yabeda.collect!
      puts GC.stat(:major_gc_count)
      puts Yabeda.metrics.fetch("ruby_gc_collections_total").values.to_h { |tags, value| [tags[:type], value.value] }["major"]
      puts Yabeda.metrics.fetch("ruby_gc_heap_slots").values.size
      puts Yabeda.metrics.fetch("process_resident_memory_bytes").values.values.first.value > 5_000_000
    RUBY
    majors, counted, slots, resident = out.split
    assert_equal [majors, "2", "true"], [counted, slots, resident]
  end

  def test_statsd
    { "statsd-instrument" => "StatsD.singleton_client",
      "datadog/statsd" => 'Datadog::Statsd.new("127.0.0.1", PORT, single_thread: true)' }.each do |library, client|
      lines = statsd_lines(library, client)
      assert(lines.any? { |line| line.match?(/\Aprocess_resident_memory_bytes:\d{7,}\|g/) }, lines.join("\n"))
      assert(lines.any? { |line| line.match?(/\Aruby_gc_heap_slots:\d{5,}\|g\|#state:live\z/) }, lines.join("\n"))
      totals = lines.filter_map { |line| line[/\Aruby_gc_collections:(\d+)\|c\|#type:major\z/, 1]&.to_i }
      assert_operator totals.first, :>=, 1
      assert_equal 1, totals.last, "one collection since"
    end
    [0, -1, "1"].each { |interval| assert_raises(ArgumentError) { statsd_class.new(Object.new, interval: interval) } }
  end

  private

  def statsd_class
    require "culet/metrics"
    Culet::Metrics::StatsD
  end

  def statsd_lines(library, client)
    receiver = UDPSocket.new
    receiver.bind("127.0.0.1", 0)
    with_gems(<<~RUBY)
      ENV.update("STATSD_ENV" => "production", "STATSD_ADDR" => "127.0.0.1:#{receiver.addr[1]}", "STATSD_IMPLEMENTATION" => "datadog",
                 "STATSD_BUFFER_CAPACITY" => "0")
      require "#{library}"
      statsd = Culet::Metrics::StatsD.new(#{client.sub("PORT", receiver.addr[1].to_s)}, interval: 600)
      GC.start # a program may start without one
      statsd.send_figures
      GC.start
      statsd.send_figures
      statsd.start
      sleep 0.05 until Thread.list.any? { |thread| thread.name == "culet-statsd" && thread.status == "sleep" }
      statsd.stop
    RUBY
    lines = []
    while (packet = receiver.recvfrom_nonblock(65_536, exception: false)) != :wait_readable
      lines.concat(packet.first.split("\n"))
    end
    lines
  ensure
    receiver.close
  end

  # @return [String] what a program with these gems printed
  def with_gems(code)
    gems = Culet::Compare::Bundle.new(name: "metrics", gemfile: File.expand_path("Gemfile", __dir__))
    gems.install(log: $stderr) unless gems.installed?
    out, = assert_success(RbConfig.ruby, "-I#{ROOT}/lib", "-rbundler/setup", "-rculet/metrics", "-e", code, env: NEUTRAL.merge(gems.environment))
    out
  rescue Culet::Benchmark::Exclusion => e
    skip "#{e.message}; #{e.remedy}"
  end
end
