# frozen_string_literal: true

require "rspec/core"
require "rspec/expectations"
require_relative "limits"

module Culet
  # Adds `assert_rss_below`, `assert_shared_after_fork`, `assert_no_memory_growth` and the matcher `grow_memory` to
  # every RSpec example.
  module RSpecLimits
    include Limits

    # The matcher of growth over many calls: `expect { parse(text) }.not_to grow_memory(times: 200)`.
    class GrowMemory
      # @param options [Hash] of Limits#assert_no_memory_growth
      def initialize(**options)
        @options = options
      end

      # @return [Boolean]
      def supports_block_expectations? = true

      # @return [String]
      def description = "grow memory"

      # @param work [Proc]
      # @return [Boolean]
      def matches?(work)
        @growth = Limits::MemoryGrowth.new(**@options, &work)
        Limits.warn_of(@growth)
        @growth.grows?
      end

      # @return [String]
      def failure_message = "expected memory in use to grow with each call of the block, and it does not"

      # @return [String]
      def failure_message_when_negated = @growth.explanation
    end

    # @param options [Hash] times:, warm_up: of Limits#assert_no_memory_growth
    # @return [GrowMemory]
    def grow_memory(**options) = GrowMemory.new(**options)

    private

    def culet_assert(passed) = passed || RSpec::Expectations.fail_with(yield)
  end
end

RSpec.configure { |config| config.include(Culet::RSpecLimits) }
