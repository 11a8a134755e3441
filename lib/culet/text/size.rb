# frozen_string_literal: true

require_relative "numbers"

module Culet
  module Text
    # Byte counts as text, in decimal units: MB = 1,000,000 bytes. In powers of two are memory pages ("4 KiB"), and
    # limits that were given so, with what is compared with them ("300 of 400 MiB").
    module Size
      # Bytes of a megabyte.
      MEGABYTE = 1_000_000
      UNITS = [["PB", 10**15], ["TB", 10**12], ["GB", 10**9], ["MB", MEGABYTE], ["kB", 10**3]].freeze
      # A letter alone is of 1,024, as in control groups, systemd and Docker.
      FACTORS = { "" => 1, "b" => 1, "kb" => 10**3, "mb" => 10**6, "gb" => 10**9, "tb" => 10**12,
                  "k" => 1 << 10, "m" => 1 << 20, "g" => 1 << 30, "t" => 1 << 40 }.freeze
      TEXT = /\A(\d{1,19}(?:\.\d{1,15})?)\s*(b|[kmgt](?:i?b|i)?)?\z/i
      MOST = 1 << 63
      MEBIBYTE = 1 << 20
      BINARY_UNITS = [["TiB", 1 << 40], ["GiB", 1 << 30], ["MiB", MEBIBYTE]].freeze
      private_constant :UNITS, :FACTORS, :TEXT, :MOST, :MEBIBYTE, :BINARY_UNITS

      module_function

      # @param text [String, Integer] bytes, or a number with a unit: "80MB", "64 MiB" or "64M", "1.5g"
      # @return [Integer, nil] bytes, at least one; nil for anything that is not a size below 2**63
      def parse(text)
        number, unit = TEXT.match(text.to_s.strip)&.captures
        bytes = number && (Float(number) * FACTORS.fetch(unit.to_s.downcase.sub(/ib?\z/, "")))
        bytes.to_i if bytes && bytes >= 1 && bytes < MOST
      end

      # @param bytes [Numeric, nil] may be negative
      # @return [String] three significant digits: "16.8 GB", "512 bytes"; "" for nil
      def human(bytes)
        return "" if bytes.nil?

        bytes = bytes.round
        name, size = UNITS.find { |_, one| bytes.abs >= one }
        if name
          "#{Numbers.significant(bytes.fdiv(size))} #{name}"
        else
          "#{Numbers.grouped(bytes)} #{bytes.abs == 1 ? "byte" : "bytes"}"
        end
      end

      # @return [String] as `human`, with a sign
      def signed(bytes) = "#{"+" if bytes.round.positive?}#{human(bytes)}"

      # A limit, or bytes that stand beside one: in powers of two where the limit was given so, as control groups' and
      # most settings are (512M).
      #
      # @param bytes [Integer, nil]
      # @param limit [Integer, nil] the limit
      # @return [String] "400 MiB", "291 MiB", in one unit; as `human` where the limit is no whole number of MiB, or one
      #   of MB
      def limit(bytes, limit = bytes)
        return human(bytes) if bytes.nil? || limit.nil? || limit % MEBIBYTE != 0 || (limit % MEGABYTE).zero?

        name, size = BINARY_UNITS.find { |_, one| (limit % one).zero? }
        "#{bytes == limit ? Numbers.grouped(bytes / size) : Numbers.significant(bytes.fdiv(size))} #{name}"
      end

      # A cell of a column whose heading has the unit.
      #
      # @param bytes [Numeric, nil]
      # @param digits [Integer] decimals
      # @param unit [Integer] bytes of the heading's unit
      # @return [String] "12.3"; never "-0.0"; "-" for nil
      def cell(bytes, digits: 1, unit: MEGABYTE) = bytes.nil? ? "-" : Numbers.decimal(bytes.fdiv(unit), digits)

      # One unit for sizes that are printed side by side.
      #
      # @param bytes [Numeric] the largest of them
      # @return [Array(String, Float)] "MB" or the smallest unit above it with fewer than 100,000; the bytes of one unit
      def unit(bytes) = [["MB", 1e6], ["GB", 1e9], ["TB", 1e12]].find { |_, size| bytes < size * 1e5 } || ["PB", 1e15]
    end
  end
end
