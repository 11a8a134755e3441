# frozen_string_literal: true

require_relative "../../text/figures"
require_relative "../../text/grid"
require_relative "../../text/plot"
require_relative "history"

module Culet
  module Cow
    # A history for a terminal: some of its samples as a table, all of them as a plot where that can be shown.
    class Curve
      # So many rows tell how it went; so many workers have a line of their own.
      ROWS = 12
      WORKERS = 8
      private_constant :ROWS, :WORKERS

      # @param history [History]
      # @param width [Integer, nil] columns of a terminal that shows a plot; nil: none does
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(history, width: nil, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @history = history
        @samples = history.samples
        @width = width
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = [(plot if @width), table].compact.join("\n")

      private

      def table
        rows = some
        Compare::Report::Grid.render([["after s", rows.map { |one| format("%.1f", one.at_seconds) }, false], ["processes", rows.map { |one| one.processes.size.to_s }, false],
                                      ["all (PSS) MB", rows.map { |one| mega(one.total_pss_bytes) }, false],
                                      ["a worker shares MB", rows.map { |one| mean(one, "shared_bytes") }, false], ["its own MB", rows.map { |one| mean(one, "private_bytes") }, false]],
                                     unicode: @unicode) << "\n"
      end

      # The first, the last, and as many evenly between them as there is room for.
      def some
        return @samples if @samples.size <= ROWS

        Array.new(ROWS) { |number| @samples[number * (@samples.size - 1) / (ROWS - 1)] }
      end

      def mega(bytes) = Size.cell(bytes)

      def mean(sample, figure)
        workers = sample.workers
        workers.empty? ? "-" : mega(workers.sum { |one| one[figure] }.fdiv(workers.size))
      end

      def plot
        curves = { "all (PSS)" => @samples.map { |one| point(one, one.total_pss_bytes) } }
        @history.workers.first(WORKERS).each { |pid| curves["#{pid}'s own"] = @samples.filter_map { |one| own(one, pid) } }
        results = curves.map { |name, points| { "workload" => "sharing", "allocator" => name, "runs" => [{ "run" => 1, "samples" => points }], "summary" => {} } }
        Compare::Report::TerminalPlot.new({ "results" => results }, width: @width, color: @color, about: "memory over time").to_s
      end

      def own(sample, pid)
        worker = sample.workers.find { |one| one["pid"] == pid }
        worker && point(sample, worker["private_bytes"])
      end

      def point(sample, bytes) = { "at_seconds" => sample.at_seconds, "rss_bytes" => bytes }
    end
  end
end
