# frozen_string_literal: true

module Culet
  module Text
    # The eight colours of Okabe and Ito, "Color Universal Design" (2008), which differ for every common colour vision.
    module Colors
      # name: of a CSS variable in HTML reports; hex: "#D55E00"; terminal: number of the nearest of a terminal's 256
      # colours
      Color = Struct.new(:name, :hex, :terminal)

      # Reserved for what a chart is about.
      VERMILION = Color.new("vermilion", "#D55E00", 166)
      # Black on paper, grey on a terminal.
      INK = Color.new("ink", "#000000", 250)
      BLUE = Color.new("blue", "#0072B2", 32)
      GREEN = Color.new("green", "#009E73", 36)
      PURPLE = Color.new("purple", "#CC79A7", 175)
      SKY = Color.new("sky", "#56B4E9", 74)
      ORANGE = Color.new("orange", "#E69F00", 178)
      YELLOW = Color.new("yellow", "#F0E442", 227)
      # Every colour.
      ALL = [VERMILION, INK, BLUE, GREEN, PURPLE, SKY, ORANGE, YELLOW].freeze
      # The order in which `next` hands them out; vermilion is reserved for what a chart is about.
      ORDER = [ORANGE, SKY, PURPLE, GREEN, BLUE, YELLOW, INK].freeze
      private_constant :ORDER

      module_function

      # @param used [Array<Color>] colours in the chart so far
      # @return [Color] the one that is used least
      def next(used) = ORDER.min_by.with_index { |color, index| [used.count(color), index] }
    end
  end
end
