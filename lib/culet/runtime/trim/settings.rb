# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Trim
    # The settings in CULET_TRIM, separated by commas:
    #
    # - off, background or now: whether and where trims run after major collections
    # - minimum=SIZE: a trim that would return less is skipped (a size as of Text::Size.parse, or 0)
    # - interval=SECONDS: minimum time between two trims (default: 0.25 in the background, else 0)
    #
    # An invalid setting never stops a program: it is reported in `problems`, and the default is used.
    class Settings
      # The modes: no trims, trims in a thread, trims in the Ruby thread.
      MODES = %w[off background now].freeze
      # The smallest trim by default, in bytes.
      MINIMUM_BYTES = 1 << 20

      # @return [String] "off", "background" or "now"
      attr_reader :mode

      attr_reader :minimum_bytes

      # @return [Float, nil] seconds; nil: the default
      attr_reader :interval_seconds

      # @return [Array<String>] a sentence for each invalid setting
      attr_reader :problems

      # @param text [String, nil] the variable's value; nil or empty: all defaults
      def initialize(text)
        @mode = "background"
        @minimum_bytes = MINIMUM_BYTES
        @interval_seconds = nil
        @problems = []
        text.to_s.scrub("?").split(",").map(&:strip).reject(&:empty?).each { |word| take(word) }
      end

      private

      def take(word)
        name, value = word.split("=", 2)
        if MODES.include?(word) then @mode = word
        elsif name == "minimum" && value then take_minimum(value)
        elsif name == "interval" && value then take_interval(value)
        else complain("'#{word}' is not one of #{MODES.join(", ")}, minimum=SIZE and interval=SECONDS")
        end
      end

      def take_minimum(value)
        bytes = value == "0" ? 0 : Text::Size.parse(value)
        return @minimum_bytes = bytes if bytes

        complain("minimum=#{value} is not a size such as 512K or 4M; it stays #{MINIMUM_BYTES >> 20}M")
      end

      def take_interval(value)
        seconds = Float(value, exception: false)
        unless seconds && seconds >= 0 && seconds <= 86_400
          return complain("interval=#{value} is not a number of seconds from 0 to 86400; the default is used")
        end

        @interval_seconds = seconds
      end

      def complain(sentence) = @problems << "CULET_TRIM: #{sentence}"
    end
  end
end
