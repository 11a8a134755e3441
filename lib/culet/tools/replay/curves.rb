# frozen_string_literal: true

require_relative "../compare/report/plots"
require_relative "../../text/plot"

module Culet
  module Replay
    # Resident against requested bytes over the recorded program's time, as a plot for a terminal.
    class Curves
      REQUESTED = "requested"

      # @return [Boolean] whether a terminal is there and shows it
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

      # What was requested is plotted as if it were one more candidate: the one that wastes nothing.
      def with_requested
        first = @document["results"].first
        return @document unless first

        samples = first["runs"].first["samples"].map { |sample| { "at_seconds" => sample["at_seconds"], "rss_bytes" => sample["live_bytes"] } }
        requested = { "workload" => first["workload"], "allocator" => REQUESTED, "runs" => [{ "run" => 1, "samples" => samples }], "summary" => {} }
        @document.merge("results" => [requested, *@document["results"]])
      end
    end
  end
end
