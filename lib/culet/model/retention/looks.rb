# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "growth"

module Culet
  module Retention
    # Several looks at one process, at equal distances.
    class Looks
      # @param seconds [Float] from the first look to the last
      # @param count [Integer] of looks
      # @param interruption [Interruption] ends the series early
      # @param notes [#puts] gets a line when it ends early for another reason
      # @yieldreturn [Analysis] of one look
      def initialize(seconds:, interruption:, notes:, count: Growth::LOOKS, &look)
        @seconds = seconds
        @count = count
        @interruption = interruption
        @notes = notes
        @look = look
        @taken = []
      end

      # @return [Growth]
      # @raise [Culet::Error] when the first look fails
      def call
        start = Clock.now
        @count.times do |number|
          due = start + (@seconds * number / (@count - 1))
          break if @interruption.wait([due - Clock.now, 0].max) && @taken.any?

          take or break
        end
        Growth.new(@taken)
      end

      private

      # A look that fails, of a process that has ended, leaves those before it.
      def take
        at = Clock.now
        @taken << Growth::Look.new(at, @look.call)
      rescue Error => e
        raise if @taken.empty?

        @notes.puts("culet: #{e.message}; the report has the #{@taken.size} looks until then")
        nil
      end
    end
  end
end
