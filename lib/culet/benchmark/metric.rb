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

    # Key, title, short name, kind, whether only servers have it.
    METRICS = [
      ["peak_rss_bytes", "peak RSS", "peak RSS", :bytes], ["mean_rss_bytes", "mean RSS", "mean RSS", :bytes],
      ["end_rss_bytes", "RSS at the end", "end RSS", :bytes], ["peak_pss_bytes", "peak PSS", "peak PSS", :bytes],
      ["mean_pss_bytes", "mean PSS", "mean PSS", :bytes],
      ["loaded_rss_bytes", "RSS after the load", "loaded RSS", :bytes, true],
      ["loaded_pss_bytes", "PSS after the load", "loaded PSS", :bytes, true],
      ["end_pss_bytes", "PSS at the end", "end PSS", :bytes, true],
      ["cpu_seconds", "CPU time", "CPU", :time], ["wall_seconds", "wall time", "wall", :time],
      ["requests_per_second", "requests per second", "req", :rate, true],
      ["cpu_per_request_seconds", "CPU time per request", "CPU/req", :latency, true],
      ["p50_seconds", "median latency (p50)", "p50", :latency, true],
      ["p99_seconds", "99th percentile latency (p99)", "p99", :latency, true]
    ].map do |key, title, short, kind, server|
      Metric.new(key: key, title: title, short: short, kind: kind, server: server,
                 better: kind == :rate ? "larger" : "smaller").freeze
    end.freeze

    METRIC = METRICS.to_h { |metric| [metric.key, metric] }.freeze
  end
end
