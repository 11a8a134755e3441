# frozen_string_literal: true

require_relative "../errors"
require_relative "numbers"

module Culet
  module CLI
    # Lengths of time as users write them.
    module Duration
      UNITS = { "s" => 1, "m" => 60, "h" => 3600, "d" => 86_400, "" => 1 }.freeze
      TEXT = /\A(\d{1,15}(?:\.\d{1,15})?)\s*([smhd]?)\z/
      private_constant :UNITS, :TEXT

      module_function

      # @param flag [String] the option, for the sentence
      # @param text [String] e.g. "10s", "5m", "1h", "0.5"; without a unit, seconds
      # @return [Float] seconds
      # @raise [Culet::UsageError] when it is no length of time, none at all, or more than a year
      def seconds(flag, text)
        match = TEXT.match(text)
        value = match && (Float(match[1]) * UNITS.fetch(match[2]))
        return value if value&.positive? && value <= Numbers::MOST_SECONDS

        raise UsageError, "#{flag} takes a duration, e.g. 10s, 5m or 1h, at most 366d, not #{text[0, 40].inspect}"
      end
    end
  end
end
