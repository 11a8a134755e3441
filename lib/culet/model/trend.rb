# frozen_string_literal: true

require_relative "statistics"

module Culet
  # Whether a figure rises over time, and how fast.
  #
  # The test is Mann and Kendall's, one-sided: in a series without a trend, all orders of the values are equally likely.
  # The rate is the median of the slopes between all pairs, with the interval that inverts the test. A few outliers,
  # such as a reading in the middle of a request, change neither much.
  #
  # Sources: H. Mann, "Nonparametric Tests Against Trend" (1945); P. Sen, "Estimates of the Regression Coefficient
  # Based on Kendall's Tau" (1968); D. Knuth, The Art of Computer Programming 3, 5.1.1, for the number of permutations
  # with so many inversions.
  class Trend
    # Significance level of the one-sided test.
    LEVEL = 0.01
    # 1 / 5! is less than LEVEL, 1 / 4! is not.
    LEAST_POINTS = 5

    # @return [Array<Array(Float, Numeric)>] seconds and value
    attr_reader :points

    # @param points [Array<Array(Float, Numeric)>] seconds and value, in the order of time
    def initialize(points)
      @points = points
    end

    # @return [Float] seconds from the first point to the last
    def seconds = points.empty? ? 0.0 : points.last.first - points.first.first

    # @return [Boolean] whether it rises, by the test
    def rising? = points.size >= LEAST_POINTS && probability <= LEVEL

    # @return [Float] of so many rising pairs, or more, in a series without a trend
    def probability
      counts = inversions(points.size)
      falling = points.combination(2).count { |one, other| other.last <= one.last }
      counts.first(falling + 1).sum.fdiv(counts.sum)
    end

    # @return [Float] change per second: the median of all slopes; 0 for fewer than two points
    def rate = slopes.empty? ? 0.0 : Statistics.median(slopes).to_f

    # @return [Array(Float, Float)] the 95 % interval of the rate; all that is possible, for few points
    def interval
      return [-Float::INFINITY, Float::INFINITY] if slopes.size < 3

      counts = inversions(points.size)
      tail = (1 - Statistics::CONFIDENCE) / 2 * counts.sum
      cut = 0
      cut += 1 while cut < slopes.size / 2 && counts.first(cut + 1).sum <= tail
      cut = [cut - 1, 0].max
      [slopes[cut], slopes[-1 - cut]]
    end

    # @return [Array<Trend>] the first and the second half
    def halves
      middle = points.size / 2
      [Trend.new(points.first(points.size - middle)), Trend.new(points.last(points.size - middle))]
    end

    # The lowest value of each of some equal spans of time: what is in use after a collection.
    #
    # @param count [Integer] of spans
    # @return [Trend]
    def floors(count)
      return self if points.size < 2 * count

      Trend.new(points.each_slice((points.size / count.to_f).ceil).map { |group| group.min_by(&:last) })
    end

    private

    def slopes
      @slopes ||= points.combination(2).filter_map do |(from, first), (to, last)|
        (last - first) / (to - from).to_f if to > from
      end.sort
    end

    # @return [Array<Integer>] how many orders of so many values have 0, 1, 2 ... falling pairs
    def inversions(size)
      (2..size).reduce([1]) do |counts, more|
        sums = Array.new(counts.size + more - 1, 0)
        counts.each_with_index { |count, at| more.times { |shift| sums[at + shift] += count } }
        sums
      end
    end
  end
end
