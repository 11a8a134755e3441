# frozen_string_literal: true

require_relative "../compare/report/thinning"
require_relative "history"

module Culet
  module Cow
    # A history for the page of maps: few lines, of so many points that a small chart can show them.
    class Chart
      Thinning = Compare::Report::Thinning
      WORKERS = 4
      private_constant :Thinning, :WORKERS

      # @param history [History] with at least two samples
      def initialize(history)
        @history = history
      end

      # @return [Hash{String => Object}] as Map::Html's curve
      def to_h
        { "title" => title, "lines" => lines.reject { |line| line["points"].size < 2 } }
      end

      private

      def title
        age = forked_before
        return "Memory over time" unless age

        "Sharing over time; the first fork was #{format("%.1f", age.abs)} s #{age.negative? ? "after" : "before"} its start"
      end

      # Seconds from the first fork to the first sample.
      def forked_before
        @history.samples.flat_map { |one| one.workers.filter_map { |worker| worker["age_seconds"]&.-(one.at_seconds) } }.max
      end

      def lines
        [line("all of them (PSS)", &:total_pss_bytes), line("a worker shares, on average") { |one| mean(one, "shared_bytes") }, line("a worker's own, on average") { |one| mean(one, "private_bytes") },
         *(@history.workers.size > 1 ? @history.workers.first(WORKERS) : []).map { |pid| line("process #{pid}'s own") { |one| one.workers.find { |worker| worker["pid"] == pid }&.fetch("private_bytes") } }]
      end

      def line(name) = { "name" => name, "points" => Thinning.thin(@history.samples.filter_map { |one| yield(one)&.then { |bytes| [one.at_seconds.round(3), bytes] } }) }

      def mean(sample, figure)
        workers = sample.workers
        workers.sum { |one| one[figure] } / workers.size unless workers.empty?
      end
    end
  end
end
