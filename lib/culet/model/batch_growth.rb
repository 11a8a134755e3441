# frozen_string_literal: true

require_relative "statistics"

module Culet
  # Whether a figure grows that was read before and after each of several equal batches of calls.
  #
  # The test is a one-sided sign test of the steps from one reading to the next: where the figure grows by no more than
  # the least growth per call, at most every second step is larger than that. It assumes nothing about the size of a
  # step, so a buffer that doubles, a table that is made once and a reading in an unlucky moment count as one step each.
  #
  # Source: W. Conover, "Practical Nonparametric Statistics" (1999), 3.4, and 3.2 for the interval of the median.
  class BatchGrowth
    # Significance level of the test.
    LEVEL = 0.01

    # @param readings [Array<Integer>] before the first batch, and after each
    # @param calls [Integer] in a batch
    # @param least [Numeric] growth per call that is none
    def initialize(readings, calls:, least: 0)
      @steps = readings.each_cons(2).map { |before, after| after - before }
      @calls = calls
      @least = least
    end

    def grows? = probability <= LEVEL

    # @return [Float] of so many growing steps, or more, in a figure that does not grow
    def probability = Statistics.binomial(@steps.size - growing, @steps.size, 0.5)

    # @return [Integer] steps that are larger than the least growth
    def growing = @steps.count { |step| step > @least * @calls }

    # @return [Integer]
    def batches = @steps.size

    # @return [Float] the median of the steps
    def per_call = Statistics.median(@steps).fdiv(@calls)

    # @return [Array(Float, Float)] the bounds of its 95 % interval
    def interval
      rank = 0
      rank += 1 while Statistics.binomial(rank + 1, @steps.size, 0.5) <= TAIL
      sorted = @steps.sort
      [sorted[rank], sorted[-1 - rank]].map { |step| step.fdiv(@calls) }
    end

    TAIL = (1 - Statistics::CONFIDENCE) / 2
    private_constant :TAIL
  end
end
