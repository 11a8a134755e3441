# frozen_string_literal: true

module Servers
  # The result of one measurement as text and as rows.
  class Table
    # name => [label, factor, digits]
    ROWS = { "requests_per_second" => ["requests per second", 1, 0], "p50_seconds" => ["median answer, ms", 1e3, 2],
             "p99_seconds" => ["99th percentile, ms", 1e3, 2],
             "cpu_per_request_seconds" => ["CPU per request, ms", 1e3, 3],
             "loaded_pss_bytes" => ["PSS after a stretch, MB", 1e-6, 1],
             "rest_pss_bytes" => ["PSS at rest, MB", 1e-6, 1] }.freeze
    LABELS = { "requests_per_second" => "requests per second", "p99_seconds" => "99th percentile latency",
               "cpu_per_request_seconds" => "CPU time per request" }.freeze

    # @param result [Hash] of Measurement
    def initialize(result)
      @result = result
    end

    def to_s
      head = format("%s, %s, %d rounds of twice %d s in %d boots, %d connections",
                    *@result.values_at("workload", "allocator", "rounds", "seconds", "boots", "connections"))
      [head, "", "                              without       with   ratio (95 %)", *lines, "", trims].join("\n")
    end

    # @return [Array<Bench::Row>] ratios, and memory at rest of both
    def rows
      subject, allocator, boots = @result.values_at("workload", "allocator", "boots")
      metrics = @result["metrics"]
      ratios = LABELS.map do |name, metric|
        Bench::Row.of_summary(metrics.fetch(name)["ratio"], subject: subject, contender: "culet/auto over none",
                                                            metric: metric, unit: "ratio", runs: boots)
      end
      rest = { "none" => "without", "culet/auto" => "with" }.map do |contender, key|
        Bench::Row.of_summary(metrics.fetch("rest_pss_bytes")[key], factor: 1e-6, subject: "#{subject}, #{allocator}",
                              contender: contender, metric: "PSS at rest", unit: "MB", runs: boots)
      end
      ratios + rest
    end

    private

    def lines
      ROWS.map do |name, (label, factor, digits)|
        without, with, ratio = @result["metrics"].fetch(name).values_at("without", "with", "ratio")
        format("%-26s %10.#{digits}f %10.#{digits}f   %.3f%s", label, without["median"] * factor,
               with["median"] * factor, ratio["median"], interval(ratio))
      end
    end

    def interval(ratio) = ratio["low"] ? format(" (%.3f-%.3f)", ratio["low"], ratio["high"]) : ""

    def trims
      all = @result["trims"]
      format("major collections %d, trims %d in %.0f ms (longest %.1f ms), %.0f MB given back, " \
             "of which %.0f MB were wanted again; intervals at the end: %s s",
             sum("requested"), sum("trims"), sum("seconds") * 1e3,
             all.map { |one| one["longest_seconds"] }.max.to_f * 1e3,
             sum("returned_bytes") / 1e6, sum("refaulted_bytes") / 1e6,
             all.map { |one| one["interval_seconds"].round(2) }.sort.join(", "))
    end

    def sum(name) = @result["trims"].sum { |one| one.fetch(name) }
  end
end
