# frozen_string_literal: true

module Culet
  # Byte counts for people.
  module Size
    UNITS = %w[B KiB MiB GiB TiB].freeze
    private_constant :UNITS

    module_function

    # @param bytes [Integer]
    # @return [String] three significant digits, e.g. "1.46 GiB"
    def human(bytes)
      value = bytes.to_f
      unit = 0
      while value >= 1024 && unit < UNITS.size - 1
        value /= 1024
        unit += 1
      end
      digits = if unit.zero? || value >= 100 then 0
               elsif value >= 10 then 1
               else 2
               end
      format("%.#{digits}f %s", value, UNITS[unit])
    end
  end
end
