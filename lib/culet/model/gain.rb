# frozen_string_literal: true

require_relative "../text/size"
require_relative "thresholds"

module Culet
  # The saving of a change, and whether the change is worth making, for all tools.
  #
  # A gain must reach both a share of the whole and an amount: a server's memory varies by some 5 % within an hour
  # anyway, a few MB are not worth a restart, and half a MB is not worth a line of code. A gain near the limit is
  # reported as close and still comes with advice, so that the advice does not change from one reading to the next.
  #
  # @api private
  class Gain
    # @return [Integer] what would be freed
    attr_reader :bytes

    # @param bytes [Integer] what would be freed
    # @param of [Integer] bytes of the whole: a process's memory, what a worker inherited, what all strings hold
    # @param kind [Symbol] :setting, which takes a restart, or :code
    def initialize(bytes, of:, kind: :setting)
      @bytes = bytes
      @whole = of
      @least = [Thresholds::GAIN_BYTES.fetch(kind), Thresholds::GAIN_SHARE * of]
    end

    # @return [Symbol] :worth, :close, :small
    def verdict
      return :small if bytes < (1 - Thresholds::GAIN_BAND) * limit

      bytes < (1 + Thresholds::GAIN_BAND) * limit ? :close : :worth
    end

    # @return [Boolean] whether to advise the change
    def worth? = verdict != :small

    # @return [String] "26 %"
    def percent = Text::Numbers.percent(bytes, @whole, digits: 0)

    # @return [String] "12.3 MB (26 %)"
    def to_s = "#{Text::Size.human(bytes)} (#{percent})"

    # @return [String] the end of a sentence: "" for a clear gain, else what it is measured by
    def remark
      case verdict
      when :worth then ""
      when :close then ", about the least that is worth a change (#{limit_in_words})"
      else ", less than is worth a change (#{limit_in_words})"
      end
    end

    private

    def limit = @least.max

    # The stricter of the two conditions.
    def limit_in_words
      return Text::Size.human(@least.first) if limit == @least.first

      "#{Text::Numbers.percent(Thresholds::GAIN_SHARE, 1, digits: 0)}, #{Text::Size.human(limit)}"
    end
  end
end
