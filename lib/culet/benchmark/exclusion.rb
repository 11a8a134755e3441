# frozen_string_literal: true

require_relative "../errors"

module Culet
  module Benchmark
    # A failed run: its candidate is excluded from the workload, for this reason.
    class Exclusion < Error
      # @return [String, nil] what to do, one sentence
      attr_reader :remedy

      # @param reason [String] one sentence without its full stop
      # @param remedy [String, nil]
      def initialize(reason, remedy: nil)
        @remedy = remedy&.sub(/\A[a-z]/, &:upcase)
        super(reason)
      end
    end
  end
end
