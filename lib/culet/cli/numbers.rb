# frozen_string_literal: true

require_relative "../errors"
require_relative "../text/size"

module Culet
  module CLI
    # Numbers of options, with limits that keep a mistyped one from using up the machine.
    module Numbers
      # Runs of one candidate.
      MOST_RUNS = 10_000
      # A seed that JSON keeps exactly.
      MOST_SEED = (1 << 53) - 1
      # Lines of a list.
      MOST_LINES = 100_000
      # A year: what waits, or goes on, for longer was mistyped.
      MOST_SECONDS = 366 * 86_400
      # Longest pause of a slice in milliseconds.
      MOST_PAUSE_MILLISECONDS = 60_000

      # The agent's own time limit.
      MOST_WAIT_SECONDS = 600
      # A decimal number, with at most as many digits as a Float keeps.
      DECIMAL = /\A\d{1,15}(?:\.\d{1,15})?(?:e-?\d{1,2})?\z/i
      private_constant :DECIMAL

      private

      # @param flag [String] the option, for the sentence
      # @param text [String] what was given
      def whole(flag, text, most:, least: 1)
        value = Integer(text, 10, exception: false) if text.size <= most.to_s.size + 1
        return value if value&.between?(least, most)

        raise UsageError, "#{flag} takes a whole number from #{least} to #{most}, not #{shortened(text)}"
      end

      # @param flag [String] as for `whole`
      # @return [Float] above 0
      def positive(flag, text, most:, least: nil)
        value = Float(text) if text.match?(DECIMAL)
        return value if value&.positive? && value.between?(least || 0, most)

        range = least ? "from #{least} to #{most}" : "above 0, at most #{most}"
        raise UsageError, "#{flag} takes a number #{range}, not #{shortened(text)}"
      end

      # @return [Float] seconds that an agent may take
      def bounded(flag, text)
        seconds = Duration.seconds(flag, text)
        return seconds if seconds <= MOST_WAIT_SECONDS

        raise UsageError, "#{flag} takes ten minutes (10m) at most, not #{shortened(text)}"
      end

      # @param flag [String] of an option
      # @param text [String] its value
      # @param takes [String] what it takes, for the sentence
      # @raise [Culet::UsageError] for what is no such size
      def bytes(flag, text, takes: "a size, e.g. 80MB or 64MiB", least: 1, most: nil)
        value = Text::Size.parse(text)
        return value if value&.between?(least, most || value)

        raise UsageError, "#{flag} takes #{takes}, not #{shortened(text)}"
      end

      def shortened(text) = text.size > 40 ? "#{text[0, 40].inspect}..." : text.inspect
    end

    # Lengths of time as users write them.
    module Duration
      UNITS = { "s" => 1, "m" => 60, "h" => 3600, "d" => 86_400, "" => 1 }.freeze
      TEXT = /\A(\d{1,15}(?:\.\d{1,15})?)\s*([smhd]?)\z/
      private_constant :UNITS, :TEXT

      module_function

      # @param flag [String] the option, for the sentence
      # @param text [String] e.g. "10s", "5m", "1h", "0.5"; without a unit, seconds
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
