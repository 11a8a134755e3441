# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes/memory"

module Culet
  module Warmup
    # The steps of a warm-up that ran, and their cost.
    class Record
      def initialize
        @before = resident_bytes
        @began = Clock.now
        @costs = {}
      end

      # Runs a step and records it, unless it returns nil (nothing to do).
      #
      # @return [Object] the block's value
      def of(name)
        began = Clock.now
        result = yield
        @costs[name] = { seconds: Clock.now - began, resident_bytes: resident_bytes } unless result.nil?
        @trimmed = result if name == "trim"
        result
      end

      # @return [Hash] as Culet.warmup
      def to_h
        { resident_before_bytes: @before, resident_after_bytes: resident_bytes, trimmed_bytes: @trimmed,
          seconds: Clock.now - @began, steps: @costs.keys, costs: @costs }
      end

      private

      # @return [Integer, nil] nil without /proc
      def resident_bytes
        Processes::Memory.statm(File.read("/proc/self/statm")).first
      rescue SystemCallError
        nil
      end
    end
  end
end
