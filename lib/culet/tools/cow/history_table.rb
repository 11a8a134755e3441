# frozen_string_literal: true

require_relative "../../text/colors"
require_relative "../../text/plot"
require_relative "../../text/view"
require_relative "history"

module Culet
  module Cow
    # A history for a terminal: a table of some samples, and a plot of all where the terminal can show one.
    class HistoryTable < Text::View
      ROWS = 12
      # Workers with a curve of their own.
      WORKERS = 8
      private_constant :ROWS, :WORKERS

      # @param width [Integer, nil] columns of the terminal; nil: no plot
      # @param options [Hash] as for Text::View
      def initialize(history, width: nil, **options)
        super(**options)
        @history = history
        @samples = history.samples
        @width = width
      end

      private

      def sections = [(plot.chomp if @width), table]

      def table
        rows = some
        grid([["after s", rows.map { |one| format("%.1f", one.at_seconds) }, false],
              ["processes", rows.map { |one| one.processes.size.to_s }, false],
              ["all (PSS) MB", rows.map { |one| Text::Size.cell(one.total_pss_bytes) }, false],
              ["worker shared MB", rows.map { |one| mean(one, "shared_bytes") }, false],
              ["worker private MB", rows.map { |one| mean(one, "private_bytes") }, false]])
      end

      # The first, the last, and evenly spaced ones between them.
      def some
        return @samples if @samples.size <= ROWS

        Array.new(ROWS) { |number| @samples[number * (@samples.size - 1) / (ROWS - 1)] }
      end

      def mean(sample, figure) = Text::Size.cell(sample.worker_mean(figure))

      def plot
        all = @samples.map { |one| [one.at_seconds, one.total_pss_bytes] }
        curves = [curve("all (PSS)", all, Text::Colors::ORANGE)]
        @history.workers.first(WORKERS).each do |pid|
          points = @history.points { |one| one.worker(pid)&.fetch("private_bytes") }
          curves << curve("#{pid} private", points, Text::Colors.next(curves.map(&:color)))
        end
        Text::Plot.new(curves, title: "sharing", about: "memory over time", width: @width, color: @color).to_s
      end

      def curve(name, points, color) = Text::Plot::Curve.new(name: name, points: points, color: color)
    end
  end
end
