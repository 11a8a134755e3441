# frozen_string_literal: true

module Culet
  # Reduces the points of a curve and keeps its extremes.
  module Thinning
    # More points are not visible in a chart of 1,000 pixels.
    MAXIMUM = 400

    module_function

    # Keeps the first and last points, and the minimum and maximum of each stretch of equal size.
    #
    # @param points [Array<Array(Numeric, Numeric)>] time and value, ordered by time
    # @return [Array<Array(Numeric, Numeric)>] MAXIMUM of them at most
    def thin(points)
      return points if points.size <= MAXIMUM

      inner = points[1...-1]
      size = (inner.size / ((MAXIMUM - 2) / 2).to_f).ceil
      kept = inner.each_slice(size).flat_map do |stretch|
        stretch.each_with_index.minmax_by { |(_, value), _| value }.uniq.sort_by(&:last).map(&:first)
      end
      [points.first, *kept, points.last]
    end
  end
end
