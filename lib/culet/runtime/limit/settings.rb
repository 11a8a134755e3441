# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Limit
    # What Culet::Limit.start and CULET_LIMIT may say: auto, 512M, 85%, off.
    class Settings
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
