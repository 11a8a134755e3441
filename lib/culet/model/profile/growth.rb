# frozen_string_literal: true

require_relative "births"
require_relative "../levels"

module Culet
  module Profile
    # Whether processes grow, and how much of it the profile explains.
    class Growth
      # Levels of memory that sites are in.
      SAMPLED = %w[ruby_objects malloc_used].freeze
      # Levels in which a program can lose memory that is not sampled. Others are free, or code.
      UNSAMPLED = %w[stacks other].freeze
      # Growth of these that leaves the verdict open: bytes, and part of what is resident.
      LEAST_BYTES = 4 << 20
      LEAST_SHARE = 0.05
      private_constant :SAMPLED, :UNSAMPLED, :LEAST_BYTES, :LEAST_SHARE

      # @return [Symbol] :growth; :none; :unknown
      attr_reader :verdict
      # @return [Symbol, nil] why the verdict is unknown: :difference, :young (fewer than three major collections),
      #   :spread (no line alone grows, but all together), :unsampled (memory that is not sampled grows)
      attr_reader :reason

      # @param levels [Hash{String => Integer}, nil] by how much each level (Levels) has grown since the base
      def initialize(data, levels: nil)
        @data = data
        @levels = levels
        @verdict, @reason = judge
      end

      # @return [Hash{String => Integer}, nil] growth of each level; they add up to that of the resident memory
      attr_reader :levels

      # @return [Integer, nil] by how much the resident memory has grown since the base; nil: not known
      def rss_growth_bytes
        return levels.values.sum if levels

        known = @data.recordings.reject { |one| one.rss_growth_bytes.nil? }
        known.sum(&:rss_growth_bytes) unless known.empty? || @data.difference?
      end

      # @return [Integer, nil] by how much the sites have grown since the base, those of culet itself included; nil: not
      #   known
      def explained_bytes
        @data.births.sum(&:net_bytes).round unless reason == :difference
      end

      # @return [Integer, nil] bytes in use that grew and belong to no site, as far as the levels tell; else of what is
      #   resident
      def unexplained_bytes
        grown = levels ? levels.values_at(*SAMPLED).sum : rss_growth_bytes
        grown - explained_bytes if grown && explained_bytes
      end

      # @return [Hash{String => Integer}] growth of the levels that sites are not in, the largest first, without those
      #   that did not change
      def other_levels
        return {} unless levels

        levels.except(*SAMPLED).reject { |_, bytes| bytes.zero? }.sort_by { |_, bytes| -bytes.abs }.to_h
      end

      # @return [Float] seconds from the base to the last sample that could survive; 0: none could
      def span_seconds = @data.recordings.map(&:span_seconds).max

      # @return [Integer] a constant leak of so many bytes in this time is found in 95 of 100 cases
      def detectable_bytes = Births::DETECTABLE * @data.sample_bytes

      private

      def judge
        return %i[unknown difference] if @data.difference?
        return [:growth, nil] if @data.growing.any?
        return %i[unknown young] unless span_seconds.positive?
        return %i[unknown spread] if @data.births(own: false).reduce(Births.new, :+).grows?

        unsampled? ? %i[unknown unsampled] : [:none, nil]
      end

      def unsampled?
        return false unless levels

        rss = @data.recordings.sum(&:taken_rss_bytes)
        levels.values_at(*UNSAMPLED).sum > [LEAST_BYTES, LEAST_SHARE * rss].max
      end
    end
  end
end
