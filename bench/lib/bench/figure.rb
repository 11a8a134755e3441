# frozen_string_literal: true

require_relative "unit"

module Bench
  # One figure of a probe: its key in the probe's line, what it is called, its unit (of Unit::FORMS), whether :lower or
  # :higher is better, and the goal, if there is one.
  Figure = Struct.new(:key, :label, :unit, :better, :goal, keyword_init: true) do
    def lower_is_better? = better != :higher

    # @param values [Array<Numeric>]
    # @return [Numeric, nil]
    def best(values) = lower_is_better? ? values.min : values.max

    # @param value [Numeric] as the probe printed it
    # @return [String] rounded, with its unit
    def show(value) = Unit.show(unit, value)
  end
end
