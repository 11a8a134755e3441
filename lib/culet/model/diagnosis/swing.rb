# frozen_string_literal: true

module Culet
  class Diagnosis
    # The largest rise of a process's memory, and its fall, within a watch.
    class Swing
      LEAST_POINTS = 4
      # In a burst, this part of the added memory is added in this part of the time. Garbage is added all the time.
      ADDED = 0.5
      BURST_TIME = 0.2
      # Maximum share of steps that fall from a peak; with more, collections are too frequent for the readings.
      MOST_FALLS = 0.25
      private_constant :LEAST_POINTS, :ADDED, :BURST_TIME, :MOST_FALLS

      # @return [ObservedProcess]
      attr_reader :process
      # @return [Array<Array(Float, Numeric)>] seconds of the watch, and bytes
      attr_reader :points
      # @return [Numeric] bytes at the top
      attr_reader :peak
      # @return [Numeric] bytes before and after the peak
      attr_reader :usual

      # @param process [ObservedProcess]
      # @param trend [Trend] of its memory, in use or resident
      # @return [Swing, nil] nil: too few points
      def self.of(process, trend) = (new(process, trend.points) if trend.points.size >= LEAST_POINTS)

      # @param process [ObservedProcess]
      # @param points [Array<Array(Float, Numeric)>] seconds of the watch, and bytes
      def initialize(process, points)
        @process = process
        @points = points
        values = points.map(&:last)
        # A rise without a fall is growth, and a fall without a rise is the end of a boot: neither counts.
        floors = lowest(values).zip(lowest(values.reverse).reverse).map(&:max)
        @peak, @usual = values.zip(floors).max_by { |value, floor| value - floor }
      end

      # @return [Numeric] bytes
      def bytes = peak - usual

      # @return [Boolean] whether requests or jobs cause the swing, not garbage that accumulates until a collection
      def burst? = adding_seconds <= BURST_TIME * (points.last.first - points.first.first)

      # @return [Boolean] whether the memory falls so often that readings cannot tell bursts from garbage
      def frequent?
        falls = points.each_cons(2).count { |(_, before), (_, after)| before - after >= bytes / 2 }
        falls > MOST_FALLS * (points.size - 1)
      end

      private

      # @return [Array<Numeric>] the lowest value so far
      def lowest(values) = values.each_with_object([]) { |value, floors| floors << [value, *floors.last].min }

      # @return [Float] the shortest time, in seconds, in which half of the added memory was added
      def adding_seconds
        steps = points.each_cons(2).map { |(from, low), (to, high)| [high - low, to - from] }
        rises = steps.select { |bytes, _| bytes.positive? }.sort_by { |bytes, seconds| seconds / bytes }
        rest = ADDED * rises.sum(&:first)
        rises.take_while { |bytes, _| rest.positive?.tap { rest -= bytes } }.sum(0.0, &:last)
      end
    end
  end
end
