# frozen_string_literal: true

require_relative "../../text/view"
require_relative "history"

module Culet
  module Cow
    # A history for a terminal: a table of some samples.
    class HistoryTable < Text::View
      ROWS = 12
      private_constant :ROWS

      # @param options [Hash] as for Text::View
      def initialize(history, **options)
        super(**options)
        @samples = history.samples
      end

      private

      def sections = [table]

      def table
        rows = some
        grid([["after s", rows.map { |one| format("%.1f", one.at_seconds) }, false],
              ["processes", rows.map { |one| one.processes.size.to_s }, false],
              ["all (PSS) MB", rows.map { |one| mega(one.total_pss_bytes) }, false],
              ["worker shared MB", rows.map { |one| mean(one, "shared_bytes") }, false],
              ["worker private MB", rows.map { |one| mean(one, "private_bytes") }, false]])
      end

      # The first, the last, and evenly spaced ones between them.
      def some
        return @samples if @samples.size <= ROWS

        Array.new(ROWS) { |number| @samples[number * (@samples.size - 1) / (ROWS - 1)] }
      end

      def mean(sample, figure) = mega(sample.worker_mean(figure))
    end
  end
end
