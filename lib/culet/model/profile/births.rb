# frozen_string_literal: true

require_relative "../statistics"
require_relative "estimate"

module Culet
  module Profile
    # When the survivors of a site or row were allocated, and whether that is growth.
    #
    # The time from the base to the last survivors is divided into twelve periods. What a boot, a cache or a burst
    # leaves is of a few of them; what requests, sessions and queues hold at the moment is of the last ones; a leak has
    # survivors of all. So the first and the last period do not count, and it is growth when
    #
    # 1. at least six of the ten periods between have survivors: what was allocated in at most half of the time is
    #    never growth, however much it is;
    # 2. the second half of these periods has not significantly less than a third of the bytes (one-sided binomial
    #    test, at a level of 5 %): a cache that fills up has fewer and fewer. A program that grows becomes slower, so
    #    it is not half. Later samples of objects stand for more bytes, because they are fewer;
    # 3. more was added than was freed of what was there at the base, by three standard deviations (0.13 %): a pool or
    #    a cache of limited size replaces what it has.
    #
    # A constant leak is found in 95 of 100 cases from DETECTABLE samples on (the occupancy distribution of its samples
    # over the periods; test/profile/births_test.rb). A single buffer that grows by reallocation was born at the last
    # one, so it is no growth by this rule.
    class Births
      # As CULET_PERIODS in sampler/core/growth.h.
      PERIODS = 12
      LEAST_PERIODS = 6
      # Minimum for a site with few samples.
      FEW_PERIODS = 3
      LEAST_LATER = 1 / 3.0
      LEVEL = 0.05
      DEVIATIONS = 3
      # Expected samples of a leak in the whole time.
      DETECTABLE = 20
      private_constant :LEAST_PERIODS, :FEW_PERIODS, :LEAST_LATER, :LEVEL, :DEVIATIONS

      # @return [Array<Estimate>] of each period, what has survived
      attr_reader :periods
      # @return [Estimate] what was added since the base and is live, survivors or not
      attr_reader :born
      # @return [Estimate] what was live at the base and is gone
      attr_reader :dropped

      # @param periods [Hash{Integer => Estimate}, Array<Estimate>]
      # @param born [Estimate]
      # @param dropped [Estimate]
      def initialize(periods = {}, born = Estimate.new, dropped = Estimate.new)
        @periods = Array.new(PERIODS) { |at| periods[at] || Estimate.new }.freeze
        @born = born
        @dropped = dropped
      end

      # @return [Births] of both
      def +(other)
        Births.new(periods.zip(other.periods).map { |one, two| one + two }, born + other.born, dropped + other.dropped)
      end

      # @param other [Float] a factor
      # @return [Births] as if each sample stood for so many times as much
      def *(other) = Births.new(periods.map { |period| period * other }, born * other, dropped * other)

      # @return [Boolean] whether the site grows all the time
      def grows? = filled >= LEAST_PERIODS && lasting? && net?

      # Whether it comes before what was allocated in a part of the time only. A large leak of a short program has few
      # samples, each of which stands for many blocks: what they leave open counts as growth here, so that bytes decide.
      #
      # @return [Boolean] whether the site grows all the time, or may
      def may_grow? = grows? || (few_samples? && filled >= FEW_PERIODS && lasting?)

      # @return [Float] bytes by which it has grown since the base, of survivors and others; may be negative
      def net_bytes = born.bytes - dropped.bytes

      # @return [Boolean] whether most of what has survived is of a later period than the first
      def later? = periods.drop(1).sum(&:bytes) > periods.first.bytes

      private

      # Blocks that are sampled for certain are known, however few they are.
      def few_samples? = born.samples < DETECTABLE && born.blocks > 2 * born.samples && net_bytes.positive?

      # The periods between the first and the last.
      def between = periods[1..-2]

      def filled = between.count { |period| period.samples.positive? }

      # Of samples with equal weights, the second half is to have LEAST_LATER; where one of the first half stands for
      # fewer bytes than one of the second, it is to have a smaller share.
      def lasting?
        first, second = between.each_slice(between.size / 2).map { |half| half.sum(Estimate.new) }
        weight = second.bytes / second.samples * first.samples / first.bytes
        share = LEAST_LATER / (LEAST_LATER + ((1 - LEAST_LATER) * weight))
        Statistics.binomial(second.samples, first.samples + second.samples, share) >= LEVEL
      end

      def net? = net_bytes > DEVIATIONS * Math.sqrt(born.variance + dropped.variance)
    end
  end
end
