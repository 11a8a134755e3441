# frozen_string_literal: true

module AllocatorBench
  # A goal for culet's figure. Each kind answers `text(figure)` and `reached?(value, figure, others)`.
  module Goal
    # An absolute limit, in the figure's own unit.
    AtMost = Struct.new(:limit) do
      def text(figure) = "at most #{figure.show(limit)}"

      # @param value [Numeric] culet's
      def reached?(value, _figure, _others) = value <= limit
    end

    # Not worse than the best of some contenders, or of all, times `factor` (above 1 where lower is better, else below).
    AgainstOthers = Struct.new(:names, :factor) do
      def text(_figure)
        of = names ? "#{names.join("'s, ")}'s" : "the best other's"
        factor == 1 ? "not worse than #{of}" : "within #{format("%.2f", factor)} of #{of}"
      end

      # @param value [Numeric] culet's
      # @param others [Hash{String => Numeric}] their figures by the contender's name
      # @return [Boolean, nil] nil when none of them was measured
      def reached?(value, figure, others)
        counted = names ? others.slice(*names) : others
        best = figure.best(counted.values)
        return if best.nil?

        figure.lower_is_better? ? value <= best * factor : value >= best * factor
      end
    end

    # @param limit [Numeric]
    def self.at_most(limit) = AtMost.new(limit)

    # @param names [Array<String>] contenders; none for all
    def self.against(*names, factor: 1.0) = AgainstOthers.new(names.empty? ? nil : names, factor)
  end
end
