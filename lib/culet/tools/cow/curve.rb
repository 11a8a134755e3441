# frozen_string_literal: true

require_relative "../../text/colors"
require_relative "../../text/plot"
require_relative "../../text/size"
require_relative "../../text/table"
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
        Text::Table.render([["after s", rows.map { |one| format("%.1f", one.at_seconds) }, false], ["processes", rows.map { |one| one.processes.size.to_s }, false],
                                      ["all (PSS) MB", rows.map { |one| mega(one.total_pss_bytes) }, false],
                                      ["a worker shares MB", rows.map { |one| mean(one, "shared_bytes") }, false], ["its own MB", rows.map { |one| mean(one, "private_bytes") }, false]],
                                     unicode: @unicode) << "\n"
      end

      # The first, the last, and as many evenly between them as there is room for.
      def some
        return @samples if @samples.size <= ROWS

        Array.new(ROWS) { |number| @samples[number * (@samples.size - 1) / (ROWS - 1)] }
      end

      def mega(bytes) = Text::Size.cell(bytes)

      def mean(sample, figure)
        workers = sample.workers
        workers.empty? ? "-" : mega(workers.sum { |one| one[figure] }.fdiv(workers.size))
      end

      def plot
        curves = [curve("all (PSS)", @samples.map { |one| [one.at_seconds, one.total_pss_bytes] }, Text::Colors::ORANGE)]
        @history.workers.first(WORKERS).each do |pid|
          curves << curve("#{pid}'s own", @samples.filter_map { |one| own(one, pid) }, Text::Colors.next(curves.map(&:color)))
        end
        Text::Plot.new(curves, title: "sharing", about: "memory over time", width: @width, color: @color).to_s
      end

      def curve(name, points, color) = Text::Plot::Curve.new(name: name, points: points, color: color)

      def own(sample, pid)
        worker = sample.workers.find { |one| one["pid"] == pid }
        [sample.at_seconds, worker["private_bytes"]] if worker
      end
    end
  end
end
