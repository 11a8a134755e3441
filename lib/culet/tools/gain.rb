# frozen_string_literal: true

require_relative "../text/size"

module Culet
  # What a change would free, and whether it is worth making: the one place where every command decides that.
  #
  # A gain counts where it is a share of the whole and an amount. Less than 5 % is what a server's memory moves by itself
  # from one hour to the next, so nobody would see it; less than a few MB is not worth a restart, less than half a MB not
  # worth a line of code. Two readings of a process differ: a gain within a quarter of the limit is a close call, which is
  # said, and comes with the same advice as a larger one, so that the advice does not come and go.
  class Gain
    SHARE = 0.05
    # kind of change => least bytes
    BYTES = { setting: 4_000_000, code: 500_000 }.freeze
    # How far beside the limit is close.
    BAND = 0.25
    private_constant :SHARE, :BYTES, :BAND

    attr_reader :bytes

    # @param bytes [Integer] what would go away
    # @param of [Integer] bytes of the whole: a process's memory, what a worker inherited, what all strings hold
    # @param kind [Symbol] :setting, which takes a restart, or :code
    def initialize(bytes, of:, kind: :setting)
      @bytes = bytes
      @whole = of
      @least = [BYTES.fetch(kind), SHARE * of]
    end

    # @return [Symbol] :worth, :close, :small
    def verdict
      return :small if bytes < (1 - BAND) * limit

      bytes < (1 + BAND) * limit ? :close : :worth
    end

    # @return [Boolean] whether it comes with advice
    def worth? = verdict != :small

    # @return [String] "26 %"
    def percent = "#{@whole.zero? ? 0 : (100 * bytes.fdiv(@whole)).round} %"

    # @return [String] "12.3 MB (26 %)"
    def to_s = "#{Text::Size.human(bytes)} (#{percent})"

    # @return [String] the end of a sentence: "" for a gain that is clear, else why it is none or hardly one
    def remark
      case verdict
      when :worth then ""
      when :close then "; a close call, since the limit is #{limit_in_words}: asked again, it may be the other way round"
      else "; less than #{limit_in_words} is not worth a change"
      end
    end

    private

    def limit = @least.max

    # The one of the two conditions that is harder to meet.
    def limit_in_words = limit == @least.first ? Text::Size.human(@least.first) : "#{(100 * SHARE).round} % (#{Text::Size.human(limit.round)})"
  end
end
