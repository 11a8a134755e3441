# frozen_string_literal: true

require_relative "../../errors"

module Culet
  module Compare
    # A run that is no result: the contender is left out with this sentence.
    class Exclusion < Error
      # @return [String, nil] what to do about it, one sentence
      attr_reader :remedy

      # @param reason [String] one sentence without its full stop
      # @param remedy [String, nil]
      def initialize(reason, remedy: nil)
        @remedy = remedy&.sub(/\A[a-z]/, &:upcase)
        super(reason)
      end
    end

    # The user asked to stop (Ctrl-C, or a signal that ends processes).
    class Interrupted < Error; end
  end
end
