# frozen_string_literal: true

module Culet
  # Medians, intervals and verdicts of a few runs. A verdict of a difference needs all of:
  #
  # 1. Wilcoxon's rank-sum test, exact and two-sided, at 5 %. It assumes nothing about the distribution. With 5 runs
  #    each it takes two candidates whose runs hardly overlap; with 3 runs each even full separation has 10 %. A test
  #    on paired signs would need 6 runs. A disturbance of a whole round makes the test more cautious.
  # 2. The bootstrap interval of the paired ratios excludes 1.
  # 3. The median ratio differs from 1 by at least 1 %, which sampling cannot explain.
  #
  # A false verdict is therefore less likely than 5 %; the tests measure that on simulated runs.
  #
  # Sources: F. Wilcoxon, "Individual Comparisons by Ranking Methods" (1945); B. Streitberg and J. Roehmel's shift
  # algorithm for the exact distribution with ties (1986); B. Efron and R. Tibshirani, "An Introduction to the
  # Bootstrap" (1993), chapter 13, for the percentile interval.
  class Statistics
    CONFIDENCE = 0.95
    SIGNIFICANCE = 0.05
    # Efron and Tibshirani, chapter 13.
    RESAMPLES = 2_000
    LEAST_EFFECT = 0.01
    # 2 / C(8, 4) = 2.9 %, but 2 / C(6, 3) = 10 %.
    LEAST_RUNS = 4
    # Trials beyond which the normal distribution stands for the binomial one.
    MOST_EXACT = 1000
    private_constant :MOST_EXACT

    SMALLER = "smaller"
    LARGER = "larger"
    NONE = "no difference shown"

    # @param values [Array<Numeric>] not empty
    # @return [Numeric]
    def self.median(values)
      sorted = values.sort
      middle = sorted.size / 2
      return sorted[middle] if sorted.size.odd?

      sum = sorted[middle - 1] + sorted[middle]
      sum.is_a?(Integer) && sum.even? ? sum / 2 : sum / 2.0
    end

    # The distribution function of the binomial distribution.
    #
    # @param trials [Integer]
    # @param probability [Float] of success, between 0 and 1
    # @return [Float] probability of so many successes, or fewer
    def self.binomial(count, trials, probability)
      if trials > MOST_EXACT
        deviation = Math.sqrt(trials * probability * (1 - probability))
        return 0.5 * Math.erfc(((trials * probability) - count - 0.5) / (deviation * Math.sqrt(2)))
      end

      (0..count).sum do |k|
        ways = Math.lgamma(trials + 1).first - Math.lgamma(k + 1).first - Math.lgamma(trials - k + 1).first
        Math.exp(ways + (k * Math.log(probability)) + ((trials - k) * Math.log(1 - probability)))
      end
    end

    # @param seed [Integer] of the bootstrap
    def initialize(seed:)
      @seed = seed
    end

    # Median with its 95 % bootstrap percentile interval.
    #
    # @param values [Array<Numeric>] one per run, in any unit; not empty
    # @return [Hash] "median", "low", "high" in that unit; the bounds are nil for a single run
    def summary(values)
      low, high = interval(values)
      { "median" => self.class.median(values), "low" => low, "high" => high }
    end

    # Compares a candidate with the baseline.
    #
    # @param values [Hash{Integer => Numeric}] by run number
    # @param baseline [Hash{Integer => Numeric}] likewise; runs with the same number are paired
    # @return [Hash, nil] "ratio" (a summary of candidate / baseline), "verdict", "runs"; nil without a common run
    #   or where the baseline is not positive
    def compare(values, baseline)
      common = values.keys & baseline.keys
      return if common.empty? || common.any? { |run| !baseline[run].positive? }

      ratio = summary(common.map { |run| values[run].fdiv(baseline[run]) })
      { "ratio" => ratio, "verdict" => verdict(ratio, values.values_at(*common), baseline.values_at(*common)),
        "runs" => common.size }
    end

    # @param runs [Integer] of each candidate
    # @return [String, nil] a sentence where so few runs cannot show a difference
    def self.too_few(runs)
      return if runs >= LEAST_RUNS

      "#{runs == 1 ? "A single run of each is" : "#{runs} runs of each are"} too few to show a difference, " \
        "which takes at least #{LEAST_RUNS} (--runs)."
    end

    # Wilcoxon's rank-sum test, exact, two-sided, ties by mid-ranks.
    #
    # @param left [Array<Numeric>]
    # @param right [Array<Numeric>]
    # @return [Float] the share of arrangements with at least this separation
    def self.rank_sum_probability(left, right)
      ranks = doubled_ranks(left + right)
      observed = ranks.first(left.size).sum
      expected = left.size * ranks.sum / ranks.size.to_f
      counts = subset_sums(ranks, left.size)
      extreme = counts.sum { |sum, count| (sum - expected).abs >= (observed - expected).abs - 1e-9 ? count : 0 }
      extreme.fdiv(counts.each_value.sum)
    end

    # Doubled, so that mid-ranks are whole numbers.
    def self.doubled_ranks(values)
      sorted = values.sort
      by_value = sorted.each_with_index.group_by(&:first)
                       .transform_values { |places| places.first.last + places.last.last + 2 }
      values.map { |value| by_value.fetch(value) }
    end

    # The number of subsets of `size` ranks by their sum.
    def self.subset_sums(ranks, size)
      table = Array.new(size + 1) { Hash.new(0) }
      table[0][0] = 1
      ranks.each do |rank|
        size.downto(1) { |taken| table[taken - 1].each { |sum, count| table[taken][sum + rank] += count } }
      end
      table[size]
    end

    private

    def verdict(ratio, values, baseline)
      return NONE if values.size < LEAST_RUNS || (ratio["median"] - 1).abs < LEAST_EFFECT
      return NONE if 1.between?(ratio["low"], ratio["high"])
      return NONE if self.class.rank_sum_probability(values, baseline) > SIGNIFICANCE

      ratio["median"] < 1 ? SMALLER : LARGER
    end

    # The percentile interval of the median. Every call starts from the seed, so results do not depend on the order.
    def interval(values)
      return [nil, nil] if values.size < 2

      random = Random.new(@seed)
      medians = Array.new(RESAMPLES) do
        self.class.median(Array.new(values.size) { values[random.rand(values.size)] })
      end.sort
      tail = (1 - CONFIDENCE) / 2
      [medians[(tail * RESAMPLES).floor], medians[((1 - tail) * RESAMPLES).ceil - 1]]
    end

    private_class_method :doubled_ranks, :subset_sums
  end
end
