# frozen_string_literal: true

require_relative "../../../text/numbers"
require_relative "../../../benchmark/palette"
require_relative "../../../benchmark/results"
require_relative "../../../render/thinning"

module Culet
  module Compare
    module Report
      # The data of the HTML report's charts, and their text alternatives.
      class ChartData
        # In this order; the tables have the other metrics too.
        CHARTED = %w[peak_rss_bytes mean_rss_bytes end_rss_bytes peak_pss_bytes cpu_seconds wall_seconds
                     requests_per_second cpu_per_request_seconds p99_seconds]
                  .map { |key| Benchmark::METRIC.fetch(key) }.freeze

        # @param model [Benchmark::Results]
        def initialize(model, palette:)
          @model = model
          @palette = palette
        end

        # @return [Hash] for the page's script
        def to_h
          @to_h ||= {
            "allocators" => model.allocators.map do |name|
              { "name" => name, "colour" => palette.colour(name), "dashed" => palette.dashed?(name) }
            end,
            "workloads" => model.workloads.map do |workload|
              { "curves" => curves(workload),
                "metrics" => metrics(workload).map { |metric| metric(workload, metric) } }
            end
          }
        end

        # @return [Array<Benchmark::Metric>] with a chart
        def metrics(workload) = CHARTED & workload.metrics

        # @return [Boolean] whether a curve is thinned
        def thinned?
          runs = model.workloads.flat_map(&:candidates).flat_map(&:runs)
          runs.any? { |run| Array(run["samples"]).size > Thinning::MAXIMUM }
        end

        # @return [String] text alternative of the plot over time
        def curves_text(workload)
          symbol, size = curve_unit(workload)
          parts = workload.candidates.select(&:median_run).map do |candidate|
            rss = candidate.median_run["samples"].map { |sample| sample["rss_bytes"] }.compact
            highest, last = [rss.max, rss.last].map { |bytes| Text::Numbers.significant((bytes || 0) / size) }
            "#{candidate.allocator} rises to #{highest} #{symbol} and ends at #{last} #{symbol}"
          end
          "RSS over time on #{workload.name}, median runs: #{parts.join("; ")}."
        end

        # @return [String] text alternative of the bars
        def bars_text(workload, metric)
          parts = workload.candidates.filter_map do |candidate|
            workload.figure(candidate, metric)&.then { |text| "#{candidate.allocator} #{text}" }
          end
          "#{metric.title} on #{workload.name}, #{workload.unit(metric).first}, median and interval: " \
            "#{parts.join("; ")}."
        end

        private

        attr_reader :model, :palette

        def curve_unit(workload)
          samples = workload.candidates.flat_map(&:runs).flat_map { |run| Array(run["samples"]) }
          Benchmark::METRIC.fetch("peak_rss_bytes").unit(samples.map { |sample| sample["rss_bytes"] })
        end

        def curves(workload)
          symbol, size = curve_unit(workload)
          series = workload.candidates.flat_map do |candidate|
            candidate.runs.select { |run| Array(run["samples"]).any? }.map do |run|
              points = Thinning.thin(points(run, size))
              { "allocator" => candidate.allocator, "run" => run["run"], "median" => run.equal?(candidate.median_run),
                "seconds" => points.map(&:first), "values" => points.map(&:last) }
            end
          end
          { "unit" => symbol, "series" => series }
        end

        def points(run, size)
          samples = run["samples"].select { |sample| sample["rss_bytes"] && sample["at_seconds"] }
          points = samples.map do |sample|
            [sample["at_seconds"].round(3), (sample["rss_bytes"] / size).round(3)]
          end
          points.sort_by(&:first)
        end

        def metric(workload, metric)
          symbol, size = workload.unit(metric)
          measured = workload.candidates.select { |candidate| candidate.median(metric) }
          { "unit" => symbol, "bars" => measured.map { |candidate| bar(candidate, metric, size) } }
        end

        def bar(candidate, metric, size)
          low, high = candidate.bounds(metric)&.map { |bound| bound / size }
          median = candidate.median(metric) / size
          { "allocator" => candidate.allocator, "median" => median, "low" => low, "high" => high,
            "text" => Text::Numbers.significant(median),
            "full" => Text::Numbers.interval(median, low, high) }
        end
      end
    end
  end
end
