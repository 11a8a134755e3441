# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "interval"

module Culet
  module Profile
    # Profiles processes without end: at the end of each interval it reads them, and writes one pprof file to each
    # destination (Rotation, Pyroscope).
    class Continuous
      # @return [Integer] intervals written
      attr_reader :intervals

      # @param destinations [Array<#write, #close>]
      # @param every_seconds [Float] length of an interval
      # @param for_seconds [Float, nil] length of the whole; nil: until the session ends
      # @param lasting [Boolean] whether to go on when all processes have ended: others of their name may come
      def initialize(session, destinations, every_seconds:, for_seconds: nil, lasting: false)
        @session = session
        @destinations = destinations
        @every = every_seconds
        @for = for_seconds
        @lasting = lasting
        @intervals = 0
      end

      # Runs until the session is to end, the time is over, or the processes have ended.
      #
      # @raise [Culet::Error] when the processes cannot be profiled, or a file cannot be written
      def call
        @session.start
        @session.announce("every #{@every.to_s.delete_suffix(".0")} s; Ctrl-C ends it")
        @start = Clock.now
        @before = recordings
        @from = Time.now
        nil until cycle == :end
      ensure
        @session.stop
        @destinations.each(&:close)
      end

      private

      # Intervals begin at multiples of their length, so that they do not drift.
      def cycle
        @due = (@due || @start) + @every
        @due = Clock.now + @every if @due < Clock.now
        over = @for && @start + @for
        @session.wait([@due, over].compact.min - Clock.now, lasting: @lasting)
        found = recordings
        write(found)
        :end if @session.stopped? || (over && Clock.now >= over) || (found.empty? && !@lasting)
      end

      def recordings = @session.read(start: true).map(&:recording)

      def write(found)
        to = Time.now
        if found.any?
          content = Interval.new(@before, found, @from, to).pprof
          @destinations.each { |destination| destination.write(content, @from, to) }
          @intervals += 1
        end
        @before = found
        @from = to
      end
    end
  end
end
