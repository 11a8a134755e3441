# frozen_string_literal: true

module Bench
  # How figures are written: three digits or so, and the unit.
  module Unit
    module_function

    # @param unit [Symbol] key of FORMS
    # @param value [Numeric] as the probe printed it
    # @return [String]
    def show(unit, value) = FORMS.fetch(unit).call(value)

    # @return [String] with as many decimals as leave about three digits
    def short(value)
      decimals = { 2 => 1, 1 => 2, 0 => 2 }.fetch(value.abs.to_i.to_s.size, 0)
      format("%.#{value.zero? ? 0 : decimals}f", value)
    end

    FORMS = {
      bytes: ->(value) { "#{value.round} B" },
      mib: ->(value) { "#{short(value / 1_048_576.0)} MiB" },
      percent: ->(value) { "#{short(value * 100)} %" },
      nanoseconds: ->(value) { "#{short(value)} ns" },
      milliseconds: ->(value) { "#{short(value)} ms" },
      seconds: ->(value) { value < 1 ? "#{short(value * 1e3)} ms" : "#{short(value)} s" },
      rate: ->(value) { "#{short(value / 1e6)} M/s" },
      times: ->(value) { short(value) },
      count: ->(value) { value.round.to_s }
    }.freeze
  end
end
