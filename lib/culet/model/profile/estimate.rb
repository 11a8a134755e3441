# frozen_string_literal: true

module Culet
  # Memory profiles, see model/profile.rb.
  module Profile
    # 95 % of a normal distribution lie within so many standard deviations.
    NORMAL = 1.959964
    # Up to so many samples the limits are those of a Poisson distribution.
    FEW = 30
    private_constant :NORMAL, :FEW

    # Sums over samples (sampler/core/profile.h), and what they estimate: blocks, bytes, and the variance of the bytes.
    Estimate = Struct.new(:samples, :blocks, :bytes, :variance) do
      # The limits of Garwood (Biometrika, 1936) for the mean of a Poisson distribution, by Wilson's and Hilferty's
      # approximation of the chi-square distribution.
      #
      # @param count [Integer] events, at least 1
      # @return [Array(Float, Float)]
      def self.poisson(count)
        above = count + 1
        [count * ((1 - (1.0 / (9 * count)) - (NORMAL / (3 * Math.sqrt(count))))**3),
         above * ((1 - (1.0 / (9 * above)) + (NORMAL / (3 * Math.sqrt(above))))**3)].map { |limit| [limit, 0].max }
      end

      # @param size [Integer] of a block in bytes
      # @param weight [Float] number of blocks that the sample stands for
      # @return [Estimate] of one sample
      def self.of(size, weight) = new(1, weight, weight * size, weight * [weight - 1, 0].max * size * size)

      def initialize(samples = 0, blocks = 0.0, bytes = 0.0, variance = 0.0) = super

      # @param other [Estimate] of other samples
      # @return [Estimate] of all
      def +(other)
        Estimate.new(samples + other.samples, blocks + other.blocks, bytes + other.bytes, variance + other.variance)
      end

      # @param other [Estimate] of some of these samples
      # @return [Estimate] of the others
      def -(other)
        Estimate.new([samples - other.samples, 0].max, [blocks - other.blocks, 0].max, [bytes - other.bytes, 0].max,
                     [variance - other.variance, 0].max)
      end

      # @param other [Float] a factor
      # @return [Estimate] as if each sample stood for so many times as much
      def *(other)
        Estimate.new(samples, blocks * other, bytes * other, variance * other * other)
      end

      # @return [Float] lower end of the interval that has the true size in 95 of 100 cases
      def low_bytes = limits.first

      # @return [Float] its upper end
      def high_bytes = limits.last

      private

      # Few samples have a skewed distribution: its limits, for as many samples, times the mean of a sample. Their share
      # of the variance shrinks where samples are certain (blocks larger than the distance).
      def limits
        @limits ||=
          if samples.zero? || samples > FEW then [[bytes - half, 0].max, bytes + half]
          else
            spread = Math.sqrt(variance / samples) / (bytes / samples)
            low, high = Estimate.poisson(samples)
            [bytes - ((samples - low) * bytes / samples * [spread, 1].min),
             bytes + ((high - samples) * bytes / samples * [spread, 1].min)]
          end
      end

      # Half of the interval, if the bytes are distributed normally.
      def half = NORMAL * Math.sqrt(variance)
    end
  end
end
