# frozen_string_literal: true

module Culet
  # Byte counts for people, in decimal units everywhere: MB = 1,000,000 bytes. The one exception is a memory page, which
  # hardware sizes in powers of two: "4 KiB".
  module Size
    MEGABYTE = 1_000_000
    UNITS = [["PB", 10**15], ["TB", 10**12], ["GB", 10**9], ["MB", MEGABYTE], ["kB", 10**3]].freeze
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

    # @param bytes [Integer, nil] may be negative
    # @return [String] three significant digits: "16.8 GB", "512 bytes"; "" for nil
    def human(bytes)
      return "" if bytes.nil?

      name, size = UNITS.find { |_, one| bytes.abs >= one }
      name ? "#{significant(bytes.fdiv(size))} #{name}" : "#{grouped(bytes)} #{bytes.abs == 1 ? "byte" : "bytes"}"
    end

    # A cell of a column whose heading has the unit.
    #
    # @param bytes [Numeric, nil]
    # @param digits [Integer] decimals
    # @param unit [Integer] bytes of the heading's unit
    # @return [String] "12.3"; never "-0.0"; "-" for nil
    def cell(bytes, digits: 1, unit: MEGABYTE)
      return "-" if bytes.nil?

      decimal(bytes.fdiv(unit), digits)
    end

    # @return [String] with so many digits; what rounds to nought has no sign
    def decimal(value, digits)
      text = format("%.#{digits}f", value)
      text.match?(/\A-[0.]+\z/) ? text.delete_prefix("-") : text
    end

    # @param value [Numeric, nil] already in the unit it is shown in
    # @return [String] three significant digits below 1,000, whole numbers with thousands separators above; "" for nil
    def significant(value)
      return "" if value.nil?

      size = value.abs
      return "0" if size.zero?
      return grouped(value.round) if size >= 99.95

      decimal(value, size >= 9.995 ? 1 : 2)
    end

    # @param value [Numeric] a whole number
    # @return [String] with thousands separators: "12,345"
    def grouped(value) = value.to_i.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
  end
end
