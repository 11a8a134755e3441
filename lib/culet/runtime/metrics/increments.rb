# frozen_string_literal: true

module Culet
  module Metrics
    # How much totals and levels changed since the last time, for libraries that add up.
    class Increments
      def initialize
        @last = {}
      end

      # @param labels [Hash{String => String}]
      # @param value [Numeric]
      # @return [Numeric] the difference to the last value, at first to zero
      def level(name, labels, value)
        before = @last[[name, labels]] || 0
        @last[[name, labels]] = value
        value - before
      end

      # @return [Numeric] the same of a total, which never falls: a forked process counts some from zero
      def total(name, labels, value)
        difference = level(name, labels, value)
        difference.negative? ? value : difference
      end
    end
  end
end
