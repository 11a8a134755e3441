# frozen_string_literal: true

require_relative "../compare/report/thinning"
require_relative "history"

module Culet
  module Cow
    # A history as the chart of the map page: few curves, each with as many points as a small chart can show.
    class HistoryChart
      WORKERS = 4
      private_constant :WORKERS

      # @param history [History] with at least two samples
      def initialize(history)
        @history = history
      end

      # @return [Hash{String => Object}] Map::Html's curve
      def to_h
        { "title" => title, "lines" => lines.reject { |line| line["points"].size < 2 } }
      end

      private

      def title
        age = forked_before
        return "Memory over time" unless age

        order = age.negative? ? "after" : "before"
        "Sharing over time; the first fork was #{format("%.1f", age.abs)} s #{order} the first sample"
      end

      # Seconds from the first fork to the first sample.
      def forked_before
        ages = @history.samples.flat_map do |one|
          one.workers.filter_map { |worker| worker["age_seconds"]&.-(one.at_seconds) }
        end
        ages.max
      end

      def lines
        pids = @history.workers
        single = (pids.size > 1 ? pids.first(WORKERS) : []).map do |pid|
          line("process #{pid}, private") { |one| one.worker(pid)&.fetch("private_bytes") }
        end
        [line("all processes (PSS)", &:total_pss_bytes),
         line("average worker, shared") { |one| one.worker_mean("shared_bytes")&.round },
         line("average worker, private") { |one| one.worker_mean("private_bytes")&.round },
         *single]
      end

      def line(name, &value)
        points = @history.points(&value).map { |seconds, bytes| [seconds.round(3), bytes] }
        { "name" => name, "points" => Compare::Report::Thinning.thin(points) }
      end
    end
  end
end
