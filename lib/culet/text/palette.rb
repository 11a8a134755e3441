# frozen_string_literal: true

require_relative "../tools/allocators/trim"

module Culet
  module Compare
    module Report
      # One colour per allocator, the same everywhere in a report. The colours
      # are those of Okabe and Ito, "Color Universal Design" (2008), chosen to be
      # told apart with every common colour vision; vermilion is kept for culet.
      class Palette
        # Name of a CSS variable in the HTML report, and the nearest colour of
        # the 256-colour terminal palette.
        Colour = Struct.new(:name, :hex, :terminal)

        VERMILION = Colour.new("vermilion", "#D55E00", 166)
        INK = Colour.new("ink", "#000000", 250)
        BLUE = Colour.new("blue", "#0072B2", 32)
        GREEN = Colour.new("green", "#009E73", 36)
        PURPLE = Colour.new("purple", "#CC79A7", 175)
        SKY = Colour.new("sky", "#56B4E9", 74)
        ORANGE = Colour.new("orange", "#E69F00", 178)
        YELLOW = Colour.new("yellow", "#F0E442", 227)

        FIXED = { "culet" => VERMILION, "glibc" => INK, "jemalloc" => BLUE, "tcmalloc" => GREEN, "mimalloc" => PURPLE,
                  "glibc:arena_max=2" => SKY }.freeze
        ALL = [VERMILION, INK, BLUE, GREEN, PURPLE, SKY, ORANGE, YELLOW].freeze
        # What contenders without a colour of their own take, in this order.
        SPARE = [ORANGE, SKY, PURPLE, GREEN, BLUE, YELLOW, INK].freeze

        # @param model [Model]
        def initialize(model)
          @colours = {}
          @solid = {}
          named, others = model.allocators.partition { |name| FIXED.key?(name) }
          named.each { |name| @colours[name] = FIXED.fetch(name) }
          others.each { |name| @colours[name] = untrimmed(model, name) || spare(model, name) }
          model.allocators.each { |name| @solid[name] = !name.include?(":") }
        end

        # @param allocator [String]
        # @return [Colour]
        def colour(allocator) = @colours.fetch(allocator)

        # @return [Integer] number of a colour of the 256-colour terminal palette
        def terminal(allocator) = colour(allocator).terminal

        # Contenders with a setting are dashed: a second cue beside the colour. One that differs from another without a
        # setting by the trim alone has that one's colour, so that the two are seen to belong together.
        #
        # @return [Boolean]
        def dashed?(allocator) = !@solid.fetch(allocator)

        private

        def untrimmed(model, name)
          family = model.family(name)
          @colours[family] if name == "#{family}:#{Allocators::Trim::KEY}"
        end

        # culet's variants take vermilion when it is free; beyond eight contenders
        # the colours come round again.
        def spare(model, name)
          used = @colours.values
          return VERMILION if model.family(name) == "culet" && !used.include?(VERMILION)

          SPARE.min_by.with_index { |colour, index| [used.count(colour), index] }
        end
      end
    end
  end
end
