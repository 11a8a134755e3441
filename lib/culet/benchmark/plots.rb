# frozen_string_literal: true

require_relative "../text/plot"
require_relative "results"
require_relative "palette"

module Culet
  module Benchmark
    # RSS over time for a terminal: one plot per workload, one curve per allocator (the median run).
    class Plots
      # @param document [Hash] the result document of a comparison
      # @param options [Hash] width:, height:, color: of Text::Plot
      def initialize(document, **options)
        @model = Results.new(document)
        @palette = Palette.new(@model)
        @options = options
      end

      # @return [String] the plots; "" when no run has samples
      def to_s = @model.workloads.select(&:samples?).map { |workload| plot(workload) }.join("\n")

      private

      def plot(workload)
        curves = workload.candidates.select(&:median_run).map { |candidate| curve(candidate) }
        Text::Plot.new(curves, title: workload.name, about: "RSS over time, median run",
                               front: @model.subject, **@options).to_s
      end

      def curve(candidate)
        points = candidate.median_run["samples"].map do |sample|
          [sample["at_seconds"].to_f, sample["rss_bytes"].to_f]
        end
        Text::Plot::Curve.new(name: candidate.allocator, points: points.sort_by(&:first),
                              color: @palette.colour(candidate.allocator))
      end
    end
  end
end
