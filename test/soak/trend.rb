# frozen_string_literal: true

module Soak
  # Whether a figure stayed flat: what its samples of a long run show, and whether that keeps to the limits.
  #
  # The first quarter is left out, in which a program grows to its working size. The slope is that of the straight line
  # with the least squares through the medians of stretches, so that single peaks weigh little.
  class Trend
    STRETCHES = 12 # into which the last three quarters are cut
    MINUTES = 10.0 # per which the slope is told
    SLOPE_LIMIT = 0.01 # of the median, per ten minutes
    RATIO_LIMIT = 1.03 # of the last quarter's median to the second's
    private_constant :STRETCHES, :MINUTES

    # @param samples [Array<Array(Float, Integer)>] seconds since the start, bytes; in the order of time
    # @raise [ArgumentError] where there are too few to say anything
    def initialize(samples)
      raise ArgumentError, "#{samples.size} samples are too few" if samples.size < 8

      first = samples.first[0]
      last = samples.last[0]
      @quarters = Array.new(4) do |quarter|
        samples.select { |at, _| at.between?(first + ((last - first) * quarter / 4), first + ((last - first) * (quarter + 1) / 4)) }
      end
      raise ArgumentError, "a quarter of the run has no samples" if @quarters.any?(&:empty?)

      @late = samples.select { |at, _| at >= first + ((last - first) / 4) }
    end

    # @return [Float] bytes in the middle of the last three quarters' samples
    def median_bytes = median(@late.map(&:last))

    # @return [Float] share of the median that is gained per ten minutes; negative where it shrinks
    def slope
      points = medians_of_stretches
      mean_at, mean_bytes = points.transpose.map { |values| values.sum / values.size.to_f }
      spread = points.sum { |at, _| (at - mean_at)**2 }
      return 0.0 if spread.zero?

      per_second = points.sum { |at, bytes| (at - mean_at) * (bytes - mean_bytes) } / spread
      per_second * 60 * MINUTES / median_bytes
    end

    # @return [Float] the last quarter's median as a multiple of the second's
    def ratio = median(@quarters[3].map(&:last)) / median(@quarters[1].map(&:last))

    # @return [Array<String>] a sentence for each limit that is exceeded
    def objections
      [("it grows by #{percent(slope)} per ten minutes, more than #{percent(SLOPE_LIMIT)}" if slope > SLOPE_LIMIT),
       (format("the last quarter has %.3f times the second's median, more than %.2f", ratio, RATIO_LIMIT) if ratio > RATIO_LIMIT)].compact
    end

    private

    def medians_of_stretches
      @late.each_slice((@late.size / STRETCHES.to_f).ceil).map { |part| [median(part.map(&:first)), median(part.map(&:last))] }
    end

    def median(values)
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    def percent(share) = format("%.2f %%", share * 100)
  end
end
