# frozen_string_literal: true

module Culet
  module Compare
    # Memory over time of one run.
    class Series
      Sample = Struct.new(:at, :rss, :pss, :processes)
      private_constant :Sample

      # @param value [Hash{Integer => Integer}] by process: the highest resident figure the kernel noted, in bytes
      attr_writer :process_peaks

      def initialize
        @samples = []
        @process_peaks = {}
      end

      # @param at [Float] seconds since the start
      # @param rss [Integer] bytes of all processes
      # @param pss [Integer, nil] bytes; nil where it was not looked at
      # @param processes [Integer] how many
      def add(at:, rss:, pss:, processes:) = @samples << Sample.new(at, rss, pss, processes)

      def size = @samples.size

      def empty? = @samples.empty?

      # The highest sum that was sampled or, where a single process was higher between two samples, what the
      # kernel noted for it (VmHWM): both are lower bounds of the tree's true peak.
      #
      # @return [Integer] bytes
      def peak_rss_bytes = [@samples.map(&:rss).max || 0, @process_peaks.each_value.max || 0].max

      # @return [Integer, nil] bytes; nil when PSS could not be read
      def peak_pss_bytes = with_pss.map(&:pss).max

      # @return [Integer] bytes, weighted by time
      def mean_rss_bytes = mean(@samples, &:rss) || 0

      # @return [Integer, nil] bytes, weighted by time
      def mean_pss_bytes = mean(with_pss, &:pss)

      # @return [Integer, nil] the process that was largest
      def largest_process = @process_peaks.max_by { |_, bytes| bytes }&.first

      # @return [Array<Hash>] as the result document has them
      def to_a
        @samples.map do |sample|
          { "at_seconds" => sample.at.round(4), "rss_bytes" => sample.rss, "pss_bytes" => sample.pss,
            "processes" => sample.processes }.compact
        end
      end

      private

      def with_pss = @samples.select(&:pss)

      # Trapezoidal rule over the time between the first sample and the last.
      def mean(samples)
        return if samples.empty?

        span = samples.last.at - samples.first.at
        return yield(samples.first) unless span.positive?

        area = samples.each_cons(2).sum { |left, right| (right.at - left.at) * (yield(left) + yield(right)) / 2.0 }
        (area / span).round
      end
    end
  end
end
