# frozen_string_literal: true

require_relative "../../model/statistics"

module Culet
  module Compare
    # The memory samples of one run.
    class Series
      Sample = Struct.new(:at, :rss, :pss, :processes)
      private_constant :Sample

      # The memory at the end is the median of this time.
      END_SECONDS = 0.2
      private_constant :END_SECONDS

      # @param value [Hash{Integer => Integer}] peak RSS (VmHWM) by process, in bytes
      attr_writer :process_peaks

      # @param value [Float, nil] seconds since the start when the work was done; nil: at the end of the program
      attr_writer :done_at

      # @return [Float] CPU seconds of the sampled processes until the last sample
      attr_accessor :sampled_cpu_seconds

      def initialize
        @samples = []
        @sampled_cpu_seconds = 0.0
        @process_peaks = {}
      end

      # @param at [Float] seconds since the start
      # @param rss [Integer] bytes of all processes
      # @param pss [Integer, nil] bytes; nil where it was not read
      # @param processes [Integer] how many
      def add(at:, rss:, pss:, processes:) = @samples << Sample.new(at, rss, pss, processes)

      # @return [Integer] number of samples
      def size = @samples.size

      # @return [Float, nil] seconds from the start to the last sample
      def last_at_seconds = @samples.last&.at

      # The largest sampled sum or VmHWM of a process: both are lower bounds of the tree's peak.
      def peak_rss_bytes = [@samples.map(&:rss).max || 0, @process_peaks.each_value.max || 0].max

      # @return [Integer, nil] bytes; nil when PSS could not be read
      def peak_pss_bytes = with_pss.map(&:pss).max

      # @return [Integer] bytes, the mean over time until the work was done
      def mean_rss_bytes = mean(at_work(@samples), &:rss) || 0

      # @return [Integer, nil] likewise
      def mean_pss_bytes = mean(at_work(with_pss), &:pss)

      # @return [Integer, nil] bytes before the program ended; nil without a sample
      def end_rss_bytes
        last = @samples.last or return

        Statistics.median(@samples.reverse_each.take_while { |sample| sample.at > last.at - END_SECONDS }.map(&:rss))
      end

      # @return [Integer, nil] number of the largest process
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

      # All where the work ended before the first sample.
      def at_work(samples)
        return samples unless @done_at

        until_done = samples.take_while { |sample| sample.at <= @done_at }
        until_done.empty? ? samples : until_done
      end

      # Trapezoidal rule.
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
