# frozen_string_literal: true

require_relative "../text/size"

module Culet
  module Benchmark
    # A metric: its key in the document, its names and its unit. `better` is the favourable verdict: "smaller" for
    # memory and times, "larger" for a rate.
    Metric = Struct.new(:key, :title, :short, :kind, :better, :server, keyword_init: true) do
      # @param values [Array<Numeric>] the values of one column, in bytes or seconds
      # @return [Array(String, Float)] symbol and size of the smallest decimal unit with values below 100,000
      def unit(values)
        greatest = values.compact.map(&:abs).max || 0
        case kind
        when :bytes then Text::Size.unit(greatest)
        when :latency
          [["µs", 1e-6, 1e-3], ["ms", 1e-3, 1.0]].find { |_, _, below| greatest < below }&.first(2) || ["s", 1.0]
        when :time then ["s", 1.0]
        else ["/s", 1.0]
        end
      end
    end

    METRICS = [
      Metric.new(key: "peak_rss_bytes", title: "peak RSS", short: "peak RSS", kind: :bytes, better: "smaller"),
      Metric.new(key: "mean_rss_bytes", title: "mean RSS", short: "mean RSS", kind: :bytes, better: "smaller"),
      Metric.new(key: "end_rss_bytes", title: "RSS at the end", short: "end RSS", kind: :bytes, better: "smaller"),
      Metric.new(key: "peak_pss_bytes", title: "peak PSS", short: "peak PSS", kind: :bytes, better: "smaller"),
      Metric.new(key: "mean_pss_bytes", title: "mean PSS", short: "mean PSS", kind: :bytes, better: "smaller"),
      Metric.new(key: "loaded_rss_bytes", title: "RSS after the load", short: "loaded RSS", kind: :bytes,
                 better: "smaller", server: true),
      Metric.new(key: "loaded_pss_bytes", title: "PSS after the load", short: "loaded PSS", kind: :bytes,
                 better: "smaller", server: true),
      Metric.new(key: "end_pss_bytes", title: "PSS at the end", short: "end PSS", kind: :bytes,
                 better: "smaller", server: true),
      Metric.new(key: "cpu_seconds", title: "CPU time", short: "CPU", kind: :time, better: "smaller"),
      Metric.new(key: "wall_seconds", title: "wall time", short: "wall", kind: :time, better: "smaller"),
      Metric.new(key: "requests_per_second", title: "requests per second", short: "req", kind: :rate,
                 better: "larger", server: true),
      Metric.new(key: "cpu_per_request_seconds", title: "CPU time per request", short: "CPU/req", kind: :latency,
                 better: "smaller", server: true),
      Metric.new(key: "p50_seconds", title: "median latency (p50)", short: "p50", kind: :latency,
                 better: "smaller", server: true),
      Metric.new(key: "p99_seconds", title: "99th percentile latency (p99)", short: "p99", kind: :latency,
                 better: "smaller", server: true)
    ].each(&:freeze).freeze

    METRIC = METRICS.to_h { |metric| [metric.key, metric] }.freeze
  end
end
