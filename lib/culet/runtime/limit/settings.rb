# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Limit
    # The value of Culet::Limit.start or CULET_LIMIT: auto, 512M, 85%, off.
    class Settings
      # @return [Integer, nil] bytes; nil: the kernel's limit
      attr_reader :bytes

      # @return [Integer, nil] percent of the kernel's limit
      attr_reader :percent

      # @return [String, nil] a sentence about an invalid value
      attr_reader :problem

      # @param value [Symbol, String, Integer, true, nil] nil, empty or "off": none
      def initialize(value)
        @text = value == true ? "auto" : value.to_s.scrub("?").strip
        take unless off?
      end

      # @return [Boolean] whether the limit is turned off
      def off? = @text.empty? || @text == "off" || @text == "false"

      private

      def take
        return if (@bytes = Text::Size.parse(@text))

        if (match = /\A(\d{1,3}) ?%\z/.match(@text)) && match[1].to_i.between?(1, 100)
          @percent = match[1].to_i
        elsif @text != "auto"
          @problem = "the limit #{@text.inspect} is not auto, a size such as 512M, or 1% to 100%"
        end
      end
    end
  end
end
