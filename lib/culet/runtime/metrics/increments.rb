# frozen_string_literal: true

module Culet
  module Metrics
    # Changes of totals and levels since the last call, for libraries that add up.
    class Increments
      def initialize
        @last = {}
      end

      # @param labels [Hash{String => String}]
      # @param value [Numeric]
      # @return [Numeric] the difference to the last value, in the first call to zero
      def level(name, labels, value)
        before = @last[[name, labels]] || 0
        @last[[name, labels]] = value
        value - before
      end

      # @return [Numeric] the difference to the last value, at least 0, because a forked process counts some totals from
      #   0
      def total(name, labels, value)
        difference = level(name, labels, value)
        difference.negative? ? value : difference
      end
    end
  end
end
