# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "growth"

module Culet
  module Retention
    # Several looks at one process, at equal distances. Each is made in a forked copy with idle priority, which takes
    # long on a busy machine.
    class Looks
      # A copy that had no processor in time, or waits for a lock, is no reason to give up; several in a row are.
      MOST_FAILURES = 3
      # Part of the time from the first look to the last one, at least: what grew until then may have ended.
      LEAST_SPAN = 0.75
      private_constant :MOST_FAILURES, :LEAST_SPAN

      # @return [String, nil] a sentence on why there are fewer looks
      attr_reader :problem

      # @param seconds [Float] from the first look to the last
      # @param interruption [Interruption] ends the series early
      # @param most_cpu_seconds [Float] a process of which a look took more processor time is not looked at again
      # @yieldreturn [Analysis] of one look, which is not to ask again by itself: the time of a look is that of its copy
      def initialize(seconds:, interruption:, most_cpu_seconds: Float::INFINITY, &look)
        @seconds = seconds
        @interruption = interruption
        @most_cpu_seconds = most_cpu_seconds
        @look = look
        @taken = []
        @failures = 0
      end

      # Takes them, one after the other.
      def call
        start = Clock.now
        until problem || @taken.size == Growth::LOOKS
          due = start + (@seconds * @taken.size / (Growth::LOOKS - 1))
          break @seconds = Clock.now - start if @interruption.wait([due - Clock.now, 0].max) && @taken.any?

          take
        end
      end

      # @return [Growth, nil] by the looks that were taken; nil: none was
      def growth = (Growth.new(@taken.dup) if @taken.any?)

      # @return [Boolean] whether there are enough looks to tell what grows, over most of the time
      def known? = @taken.any? && growth.known? && growth.seconds >= LEAST_SPAN * @seconds

      # @return [Boolean] whether looks are missing that were not given up
      def late? = problem.nil? && !known?

      private

      def take
        at = Clock.now
        analysis = @look.call
        @taken << Growth::Look.new(at, analysis)
        @failures = 0
        @problem = "a look took #{analysis.cpu_seconds.round} s" if analysis.cpu_seconds > @most_cpu_seconds
      rescue Error => e
        @failures += 1
        @problem = e.message if @failures == MOST_FAILURES
      end
    end
  end
end
