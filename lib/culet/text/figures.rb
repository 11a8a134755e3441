# frozen_string_literal: true

require_relative "size"

module Culet
  module Compare
    module Report
      # How numbers are written, the same in every form of the report.
      module Figures
        module_function

        # @see Culet::Size.significant
        def number(value) = Size.significant(value)

        # @see Culet::Size.grouped
        def grouped(value) = Size.grouped(value)

        # @param median [Numeric]
        # @param low [Numeric, nil] lower bound of the interval
        # @param high [Numeric, nil] upper bound
        # @return [String] "401 (395–410)", or "401" without an interval
        def interval(median, low = nil, high = nil)
          return number(median) unless low && high

          "#{number(median)} (#{number(low)}–#{number(high)})"
        end

        # @param ratio [Hash, nil] "median", "low" and "high", the last two may be missing
        # @param apart [Boolean] whether the ratio is to be seen to differ from 1
        # @return [String] "0.48 (0.46–0.51)"; if `apart`, with more decimals where two
        #   would round a figure that is not 1 to it and so contradict the verdict
        def ratio(ratio, apart: false)
          return "" unless ratio && ratio["median"]

          low, high = ratio.values_at("low", "high")
          digits = ratio_digits([ratio["median"], low, high].compact, apart)
          text = decimal(ratio["median"], digits)
          low && high ? "#{text} (#{decimal(low, digits)}–#{decimal(high, digits)})" : text
        end

        def ratio_digits(values, apart)
          return 0 if values.max >= 99.5

          least = values.min < 0.0995 ? 3 : 2
          return least unless apart

          (least..4).find { |digits| values.none? { |value| value != 1 && value.round(digits) == 1 } } || 4
        end

        def decimal(value, digits)
          digits.zero? ? grouped(value.round) : format("%.#{digits}f", value)
        end

        # @see Culet::Size.human
        def bytes(bytes) = Size.human(bytes)

        # @param names [Array<String>]
        # @return [String] "a", "a and b", "a, b and c"
        def list(names)
          return names.first.to_s if names.size < 2

          "#{names[0..-2].join(", ")} and #{names.last}"
        end

        # @param count [Integer]
        # @param noun [String] singular; the plural adds an s
        # @return [String] "1 run", "5 runs"
        def counted(count, noun) = "#{grouped(count)} #{noun}#{"s" unless count == 1}"
      end
    end
  end
end
