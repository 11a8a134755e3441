# frozen_string_literal: true

module Culet
  module Trim
    # What CULET_TRIM asks for: words separated by commas.
    #
    # - off, background or now: whether major collections are followed by trims, and where they run
    # - minimum=SIZE: a trim that gives back less is not worth it (bytes, or with K, M or G behind)
    # - interval=SECONDS: from a trim's end to the next one's start, at the least (default: 0.25 in the background, else 0)
    #
    # A production process is to start whatever it says: a word that cannot be understood is told in `problems`, and the
    # default stands in for it.
    class Settings
      MODES = %w[off background now].freeze
      MINIMUM_BYTES = 1 << 20
      UNITS = { "" => 1, "K" => 1 << 10, "M" => 1 << 20, "G" => 1 << 30 }.freeze
      private_constant :UNITS

      # @return [String] "off", "background" or "now"
      attr_reader :mode

      # @return [Integer] bytes
      attr_reader :minimum_bytes

      # @return [Float, nil] seconds; nil: the default
      attr_reader :interval_seconds

      # @return [Array<String>] a sentence for each word that was not understood
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
        else complain("'#{word}' is none of #{MODES.join(", ")}, minimum=SIZE and interval=SECONDS")
        end
      end

      def take_minimum(value)
        match = /\A(\d{1,12})([KMG]?)(?:i?B)?\z/i.match(value)
        return complain("minimum=#{value} is no size such as 512K or 4M; it stays #{MINIMUM_BYTES >> 20}M") unless match

        @minimum_bytes = Integer(match[1], 10) * UNITS.fetch(match[2].upcase)
      end

      def take_interval(value)
        seconds = Float(value, exception: false)
        unless seconds && seconds >= 0 && seconds <= 86_400
          return complain("interval=#{value} is no number of seconds from 0 to 86400; it stays as it is by default")
        end

        @interval_seconds = seconds
      end

      def complain(sentence) = @problems << "CULET_TRIM: #{sentence}"
    end
  end
end
