# frozen_string_literal: true

require_relative "../text/colors"
require_relative "../allocators/trim"

module Culet
  module Benchmark
    # One colour per allocator, the same in every report; vermilion is culet's.
    class Palette
      FIXED = { "culet" => Text::Colors::VERMILION, "glibc" => Text::Colors::INK, "jemalloc" => Text::Colors::BLUE,
                "tcmalloc" => Text::Colors::GREEN, "mimalloc" => Text::Colors::PURPLE,
                "glibc:arena_max=2" => Text::Colors::SKY }.freeze
      private_constant :FIXED

      # @param model [Results]
      def initialize(model)
        @colours = {}
        @solid = {}
        named, others = model.allocators.partition { |name| FIXED.key?(name) }
        named.each { |name| @colours[name] = FIXED.fetch(name) }
        others.each { |name| @colours[name] = untrimmed(model, name) || spare(model, name) }
        model.allocators.each { |name| @solid[name] = !name.include?(":") }
      end

      # @param allocator [String]
      # @return [Text::Colors::Color]
      def colour(allocator) = @colours.fetch(allocator)

      # An allocator with a setting is dashed: a second cue beside the colour. With the trim alone as its setting it
      # has the colour of the allocator without it.
      def dashed?(allocator) = !@solid.fetch(allocator)

      private

      def untrimmed(model, name)
        family = model.family(name)
        @colours[family] if name == "#{family}:#{Allocators::Trim::KEY}"
      end

      # A variant of culet takes vermilion when it is free.
      def spare(model, name)
        used = @colours.values
        return Text::Colors::VERMILION if model.family(name) == "culet" && !used.include?(Text::Colors::VERMILION)

        Text::Colors.next(used)
      end
    end
  end
end
