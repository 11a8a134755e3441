# frozen_string_literal: true

module Culet
  # Byte counts for people.
  module Size
    UNITS = %w[B KiB MiB GiB TiB].freeze
    FACTORS = { "" => 1, "k" => 10**3, "m" => 10**6, "g" => 10**9, "t" => 10**12,
                "ki" => 1 << 10, "mi" => 1 << 20, "gi" => 1 << 30, "ti" => 1 << 40 }.freeze
    TEXT = /\A(\d{1,19}(?:\.\d{1,15})?)\s*([kmgt]i?)?b?\z/i
    MOST = 1 << 63
    private_constant :UNITS, :FACTORS, :TEXT, :MOST

    module_function

    # @param text [String, Integer] bytes, or a number with a unit: "80MB", "64 MiB", "1.5g"
    # @return [Integer, nil] bytes, at least one; nil when it is no size, or more than an address can reach
    def parse(text)
      number, unit = TEXT.match(text.to_s.strip)&.captures
      bytes = number && (Float(number) * FACTORS.fetch(unit.to_s.downcase))
      bytes.to_i if bytes && bytes >= 1 && bytes < MOST
    end

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
