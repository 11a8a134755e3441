# frozen_string_literal: true

module Culet
  module Text
    # Numbers as text, the same in every table, sentence and page.
    module Numbers
      module_function

      # @param value [Numeric, nil] in the unit that is printed beside it
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

      # @param value [Numeric]
      # @param digits [Integer] decimals
      # @return [String] without a sign where the value rounds to zero
      def decimal(value, digits)
        text = format("%.#{digits}f", value)
        text.match?(/\A-[0.]+\z/) ? text.delete_prefix("-") : text
      end

      # @param noun [String] singular
      # @return [String] "1 run", "5 runs"
      def count(count, noun, plural = "#{noun}s") = "#{grouped(count)} #{count == 1 ? noun : plural}"

      # @param part [Numeric]
      # @param whole [Numeric]
      # @param digits [Integer] decimals
      # @return [String] "12.3 %"; 0 of nothing
      def percent(part, whole, digits: 1)
        share = whole.zero? ? 0 : 100.0 * part / whole
        "#{digits.zero? ? share.round : decimal(share, digits)} %"
      end

      # @param median [Numeric]
      # @param low [Numeric, nil] lower bound of the interval
      # @param high [Numeric, nil] upper bound
      # @return [String] "401 (395–410)", or "401" without an interval
      def interval(median, low = nil, high = nil)
        return significant(median) unless low && high

        "#{significant(median)} (#{significant(low)}–#{significant(high)})"
      end

      # @param ratio [Hash, nil] "median" and, where there is an interval, "low" and "high"
      # @param apart [Boolean] whether to add decimals to a ratio that would round to 1
      # @return [String] "0.48 (0.46–0.51)"
      def ratio(ratio, apart: false)
        return "" unless ratio && ratio["median"]

        low, high = ratio.values_at("low", "high")
        digits = ratio_digits([ratio["median"], low, high].compact, apart)
        text = rounded(ratio["median"], digits)
        low && high ? "#{text} (#{rounded(low, digits)}–#{rounded(high, digits)})" : text
      end

      def ratio_digits(values, apart)
        return 0 if values.max >= 99.5

        least = values.min < 0.0995 ? 3 : 2
        return least unless apart

        (least..4).find { |digits| values.none? { |value| value != 1 && value.round(digits) == 1 } } || 4
      end

      def rounded(value, digits) = digits.zero? ? grouped(value.round) : decimal(value, digits)

      private_class_method :ratio_digits, :rounded
    end
  end
end
