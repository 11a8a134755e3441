# frozen_string_literal: true

module Culet
  module Limit
    # What Culet::Limit.start and CULET_LIMIT may say: auto, 512M, 85%, off.
    class Settings
      EXPONENTS = { "" => 0, "K" => 1, "M" => 2, "G" => 3, "T" => 4 }.freeze
      # A letter alone is of 1,024, as in control groups; MB is of 1,000, as everywhere in culet.
      BASES = { nil => 1024, "IB" => 1024, "B" => 1000 }.freeze
      private_constant :EXPONENTS, :BASES

      # @param bytes [Integer]
      # @return [String, nil] a size of whole binary units as tables have it; nil for others
      def self.text(bytes)
        unit, one = [["GiB", 1 << 30], ["MiB", 1 << 20]].find { |_, size| bytes.positive? && (bytes % size).zero? }
        unit && "#{bytes / one} #{unit}"
      end

      # @return [Integer, nil] bytes; nil: as the kernel says
      attr_reader :bytes

      # @return [Integer, nil] percent of what the kernel says
      attr_reader :percent

      # @return [String, nil] a sentence about an invalid value
      attr_reader :problem

      # @param value [Symbol, String, Integer, true, nil] nil, empty or "off": none
      def initialize(value)
        @text = value == true ? "auto" : value.to_s.scrub("?").strip
        take unless off?
      end

      # @return [Boolean] whether there is to be no limit
      def off? = @text.empty? || @text == "off" || @text == "false"

      private

      def take
        if (match = /\A(\d{1,15})([KMGT]?)(i?B)?\z/i.match(@text)) && match[1].to_i.positive?
          @bytes = match[1].to_i * (BASES.fetch(match[3]&.upcase)**EXPONENTS.fetch(match[2].upcase))
        elsif (match = /\A(\d{1,3}) ?%\z/.match(@text)) && match[1].to_i.between?(1, 100)
          @percent = match[1].to_i
        elsif @text != "auto"
          @problem = "the limit #{@text.inspect} is not auto, a size such as 512M, or 1% to 100%"
        end
      end
    end
  end
end
