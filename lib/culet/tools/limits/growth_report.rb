# frozen_string_literal: true

require_relative "../../model/batch_growth"
require_relative "../../text/numbers"
require_relative "../../text/size"

module Culet
  module Limits
    # By how much memory in use grows with each call, and what keeps growing, in a few lines of text.
    class GrowthReport
      # @param readings [Hash{Symbol => Array<Integer>}] `malloc` and `slots` in bytes, `objects`; of one series
      # @param calls [Integer] in a batch
      def initialize(readings, calls:)
        @readings = readings
        @calls = calls
        @total = trend(readings[:malloc].zip(readings[:slots]).map(&:sum))
      end

      # @return [Float] bytes by which it grows with each call
      def per_call = @total.per_call

      # @param objects [Array<KeptMemory::Row>]
      # @param blocks [Array<KeptMemory::Row>, nil] nil: it cannot be known here
      def text(objects:, blocks:)
        [headline, *figures, *list("objects that are kept:", objects), *list("blocks of malloc that are kept:", blocks),
         *(advice if blocks.nil?)].join("\n")
      end

      private

      def headline
        low, high = @total.interval
        "memory in use grows by #{size(per_call)} a call (95 % interval: #{size(low)} to #{size(high)}), in each of " \
          "two series of #{Text::Numbers.count(@total.batches * @calls, "call")}:"
      end

      def figures
        ["  malloc: #{size(trend(@readings[:malloc]).per_call)} a call",
         "  Ruby objects: #{number(trend(@readings[:objects]).per_call)} a call, " \
         "#{size(trend(@readings[:slots]).per_call)} in their slots"]
      end

      def list(title, rows)
        rows.nil? || rows.empty? ? [] : [title, *rows.map { |row| "  #{row.name}: #{line(row)}" }]
      end

      def line(row)
        count = row.objects && "#{number(row.objects)} "
        "#{count}#{"#{row.kind}, " if row.kind}#{size(row.bytes)} a call"
      end

      def advice = "The lines that called malloc are known on culet's allocator: culet run -- COMMAND"

      def trend(readings) = BatchGrowth.new(readings, calls: @calls)

      def size(bytes) = Text::Size.human(bytes)

      def number(value) = Text::Numbers.significant(value)
    end
  end
end
