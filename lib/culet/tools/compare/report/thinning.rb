# frozen_string_literal: true

module Culet
  module Compare
    module Report
      # Fewer points of a curve, without losing its peaks.
      module Thinning
        # A chart is seldom wider than 1,000 pixels; with more points than about
        # half of that a curve gains bytes but nothing to be seen.
        MAXIMUM = 400

        module_function

        # Splits the points into stretches of equal count and keeps the least and
        # the greatest of each, in their order, besides the first and the last.
        #
        # @param points [Array<Array(Numeric, Numeric)>] time and value, ordered by time
        # @param maximum [Integer] how many points may remain, at least 4
        # @return [Array<Array(Numeric, Numeric)>]
        def thin(points, maximum: MAXIMUM)
          return points if points.size <= maximum

          inner = points[1...-1]
          size = (inner.size / ((maximum - 2) / 2).to_f).ceil
          kept = inner.each_slice(size).flat_map do |stretch|
            stretch.each_with_index.minmax_by { |(_, value), _| value }.uniq.sort_by(&:last).map(&:first)
          end
          [points.first, *kept, points.last]
        end
      end
    end
  end
end
