# frozen_string_literal: true

module Bench
  # One figure of a program: its key among the figures of a run, its label, and its unit (key of UNITS).
  Figure = Struct.new(:key, :label, :unit, keyword_init: true) do
    # @return [String] of the figure times `factor`
    def unit_name = self.class::UNITS.fetch(unit).first

    # @return [Numeric]
    def factor = self.class::UNITS.fetch(unit).last
  end

  # Unit of a figure to its name, and the factor from a run's figure.
  Figure::UNITS = { bytes: ["B", 1], mib: ["MiB", 1.0 / (1 << 20)], percent: ["%", 100], nanoseconds: ["ns", 1],
                    milliseconds: ["ms", 1], seconds: ["s", 1], wait: ["ms", 1e3], rate: ["M/s", 1e-6],
                    times: ["", 1], count: ["", 1] }.freeze
end
