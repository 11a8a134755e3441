# frozen_string_literal: true

module Culet
  module Compare
    # What a handful of runs can say, and what they cannot.
    #
    # The verdict on two candidates needs all three of:
    #
    # 1. Wilcoxon's rank-sum test, exact and two-sided, at 5 %: of all the ways in
    #    which the runs could have been dealt to the two candidates, at most one in
    #    twenty separates them as well as the observed one does. It assumes nothing
    #    about how figures scatter. With 5 runs each it takes two candidates whose
    #    runs hardly overlap (3.2 % in the weakest case, 0.8 % when they do not
    #    overlap at all); with 3 runs each even full separation has 10 %, so that
    #    fewer than 4 runs never show a difference. A test on paired signs would
    #    need 6 runs. What disturbs a whole round alike (another program on the
    #    machine) makes the test more cautious, not less.
    # 2. The bootstrap interval of the paired ratios excludes 1.
    # 3. The median ratio differs from 1 by at least 1 %: what is less is within the
    #    reach of sampling, and nobody's reason to change an allocator.
    #
    # The chance to call a difference where there is none is therefore below 5 % for
    # each single verdict; the tests measure it on simulated runs. A table has many
    # verdicts, so one or another of a large table may be chance.
    #
    # Sources: F. Wilcoxon, "Individual Comparisons by Ranking Methods" (1945); the
    # exact distribution with ties by B. Streitberg and J. Roehmel's shift algorithm
    # (1986); B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993),
    # chapter 13, for the percentile interval.
    class Statistics
      CONFIDENCE = 0.95
      SIGNIFICANCE = 0.05
      # Enough that the bounds' own scatter is small against the interval (Efron and Tibshirani, chapter 13).
      RESAMPLES = 2_000
      LEAST_EFFECT = 0.01
      # With fewer runs each, no arrangement is rare enough: 2 / C(8, 4) = 2.9 %, 2 / C(6, 3) = 10 %.
      LEAST_RUNS = 4

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

      # @param seed [Integer] of the resampling, so that a document is reproducible
      def initialize(seed:)
        @seed = seed
      end

      # Median with its 95 % bootstrap percentile interval.
      #
      # @param values [Array<Numeric>] one per run, in any unit; not empty
      # @return [Hash] "median", "low", "high" in that unit; the bounds are nil for a single run, which has no interval
      def summary(values)
        low, high = interval(values)
        { "median" => self.class.median(values), "low" => low, "high" => high }
      end

      # One candidate against the baseline.
      #
      # @param values [Hash{Integer => Numeric}] by run number
      # @param baseline [Hash{Integer => Numeric}] likewise; ratios are taken of runs with the same number
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
      # @return [String, nil] where a comparison of so few says "no difference shown" whatever they are: that, and what it takes
      def self.too_few(runs)
        return if runs >= LEAST_RUNS

        "#{runs == 1 ? "A single run of each is" : "#{runs} runs of each are"} too few to show a difference, which takes at least #{LEAST_RUNS} (--runs)."
      end

      # Wilcoxon's rank-sum test, exact, two-sided, ties by mid-ranks.
      #
      # @param left [Array<Numeric>]
      # @param right [Array<Numeric>]
      # @return [Float] the share of all arrangements that separate the two at least as far
      def self.rank_sum_probability(left, right)
        ranks = doubled_ranks(left + right)
        observed = ranks.first(left.size).sum
        expected = left.size * ranks.sum / ranks.size.to_f
        counts = subset_sums(ranks, left.size)
        extreme = counts.sum { |sum, count| (sum - expected).abs >= (observed - expected).abs - 1e-9 ? count : 0 }
        extreme.fdiv(counts.each_value.sum)
      end

      # Ranks times two, so that mid-ranks are whole numbers.
      def self.doubled_ranks(values)
        sorted = values.sort
        by_value = sorted.each_with_index.group_by(&:first)
                         .transform_values { |places| places.first.last + places.last.last + 2 }
        values.map { |value| by_value.fetch(value) }
      end
      private_class_method :doubled_ranks

      # How many subsets of `size` ranks have each sum.
      def self.subset_sums(ranks, size)
        table = Array.new(size + 1) { Hash.new(0) }
        table[0][0] = 1
        ranks.each do |rank|
          size.downto(1) { |taken| table[taken - 1].each { |sum, count| table[taken][sum + rank] += count } }
        end
        table[size]
      end
      private_class_method :subset_sums

      private

      def verdict(ratio, values, baseline)
        return NONE if values.size < LEAST_RUNS || (ratio["median"] - 1).abs < LEAST_EFFECT
        return NONE if ratio["low"] <= 1 && ratio["high"] >= 1
        return NONE if self.class.rank_sum_probability(values, baseline) > SIGNIFICANCE

        ratio["median"] < 1 ? SMALLER : LARGER
      end

      # Percentile interval of the median. Every call starts from the seed, so that a figure does not depend on
      # which others were computed before it.
      def interval(values)
        return [nil, nil] if values.size < 2

        random = Random.new(@seed)
        medians = Array.new(RESAMPLES) { self.class.median(Array.new(values.size) { values[random.rand(values.size)] }) }.sort
        tail = (1 - CONFIDENCE) / 2
        [medians[(tail * RESAMPLES).floor], medians[((1 - tail) * RESAMPLES).ceil - 1]]
      end
    end
  end
end
