# frozen_string_literal: true

require_relative "../compare/report/plots"
require_relative "../../text/plot"

module Culet
  module Replay
    # Resident and requested bytes over the time of the recorded program, as a plot for a terminal.
    class Curves
      REQUESTED = "requested"

      # @return [Boolean] whether the terminal can show the plot
      def self.supported?(io:, env: ENV) = Text::Plot.supported?(io: io, env: env)

      # @param document [Hash] of Runner
      # @param width [Integer] columns
      # @param color [Boolean]
      def initialize(document, width:, color:)
        @document = document
        @width = width
        @color = color
      end

      # @return [String]
      def to_s = Compare::Report::Plots.new(with_requested, width: @width, color: @color).to_s

      private

      # The requested bytes as one more curve.
      def with_requested
        first = @document["results"].first
        return @document unless first

        samples = first["runs"].first["samples"].map do |sample|
          { "at_seconds" => sample["at_seconds"], "rss_bytes" => sample["live_bytes"] }
        end
        requested = { "workload" => first["workload"], "allocator" => REQUESTED,
                      "runs" => [{ "run" => 1, "samples" => samples }], "summary" => {} }
        @document.merge("results" => [requested, *@document["results"]])
      end
    end
  end
end
