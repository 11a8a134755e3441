# frozen_string_literal: true

module Bench
  # One figure of a program: its key among the figures of a run, its label, its unit (key of UNITS), whether :lower or
  # :higher is better, and the goal, if there is one.
  Figure = Struct.new(:key, :label, :unit, :better, :goal, keyword_init: true) do
    def lower_is_better? = better != :higher

    # @return [Numeric, nil]
    def best(values) = lower_is_better? ? values.min : values.max

    # @return [String] of the figure times `factor`
    def unit_name = self.class::UNITS.fetch(unit).first

    # @return [Numeric]
    def factor = self.class::UNITS.fetch(unit).last

    # @param value [Numeric] of a run
    # @return [String] about three digits, with the unit
    def show(value) = "#{short(value * factor)} #{unit_name}".rstrip

    private

    def short(value)
      return value.round.to_s if %i[bytes count].include?(unit)

      decimals = { 2 => 1, 1 => 2, 0 => 2 }.fetch(value.abs.to_i.to_s.size, 0)
      format("%.#{value.zero? ? 0 : decimals}f", value)
    end
  end

  # Unit of a figure to its name, and the factor from a run's figure.
  Figure::UNITS = { bytes: ["B", 1], mib: ["MiB", 1.0 / (1 << 20)], percent: ["%", 100], nanoseconds: ["ns", 1],
                    milliseconds: ["ms", 1], seconds: ["s", 1], wait: ["ms", 1e3], rate: ["M/s", 1e-6],
                    times: ["", 1], count: ["", 1] }.freeze
end
