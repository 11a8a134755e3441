# frozen_string_literal: true

require_relative "../errors"

module Culet
  module CLI
    # Lengths of time as users write them.
    module Duration
      UNITS = { "s" => 1, "m" => 60, "h" => 3600, "d" => 86_400, "" => 1 }.freeze
      TEXT = /\A(\d+(?:\.\d+)?)\s*([smhd]?)\z/
      private_constant :UNITS, :TEXT

      module_function

      # @param flag [String] the option, for the sentence
      # @param text [String] e.g. "10s", "5m", "1h", "0.5"; without a unit, seconds
      # @return [Float] seconds
      # @raise [Culet::UsageError] when it is no length of time, or none at all
      def seconds(flag, text)
        match = TEXT.match(text)
        value = match && (Float(match[1]) * UNITS.fetch(match[2]))
        return value if value&.positive?

        raise UsageError, "#{flag} takes a length of time, e.g. 10s, 5m or 1h, not #{text.inspect}"
      end
    end
  end
end
