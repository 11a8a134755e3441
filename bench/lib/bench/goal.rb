# frozen_string_literal: true

module Bench
  # What culet's figure is to be. Each kind answers `text(figure)` and `reached?(value, figure, peers)`.
  module Goal
    # An absolute limit, in the figure's own unit.
    AtMost = Struct.new(:limit) do
      def text(figure) = "at most #{figure.show(limit)}"

      # @param value [Numeric] culet's
      # @return [Boolean]
      def reached?(value, _figure, _peers) = value <= limit
    end

    # Against the best of some peers, or of all: not worse than its figure times `factor` (above 1 for a figure that is
    # better when lower, below 1 for one that is better when higher).
    AgainstPeers = Struct.new(:names, :factor) do
      def text(_figure)
        of = names ? "#{names.join("'s, ")}'s" : "the best peer's"
        factor == 1 ? "not worse than #{of}" : "within #{format("%.2f", factor)} of #{of}"
      end

      # @param value [Numeric] culet's
      # @param figure [Figure]
      # @param peers [Hash{String => Numeric}] their figures by the contender's name
      # @return [Boolean, nil] nil when none of the peers was measured
      def reached?(value, figure, peers)
        counted = names ? peers.slice(*names) : peers
        best = figure.best(counted.values)
        return if best.nil?

        figure.lower_is_better? ? value <= best * factor : value >= best * factor
      end
    end

    # @param limit [Numeric]
    def self.at_most(limit) = AtMost.new(limit)

    # @param names [Array<String>] contenders; none for all
    def self.against(*names, factor: 1.0) = AgainstPeers.new(names.empty? ? nil : names, factor)
  end
end
