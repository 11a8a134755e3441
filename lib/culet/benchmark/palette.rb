# frozen_string_literal: true

require_relative "../allocators/trim"

module Culet
  module Benchmark
    # One colour per allocator, the same in every report; vermilion is culet's. They are the eight of Okabe and Ito,
    # "Color Universal Design" (2008), which differ for every common colour vision; the page's style sheet has them.
    class Palette
      FIXED = { "culet" => "vermilion", "glibc" => "ink", "jemalloc" => "blue", "tcmalloc" => "green",
                "mimalloc" => "purple", "glibc:arena_max=2" => "sky" }.freeze
      # The order in which others are handed out.
      SPARE = %w[orange sky purple green blue yellow ink].freeze
      private_constant :FIXED, :SPARE

      # @param model [Results]
      def initialize(model)
        @colours = {}
        named, others = model.allocators.partition { |name| FIXED.key?(name) }
        named.each { |name| @colours[name] = FIXED.fetch(name) }
        others.each { |name| @colours[name] = untrimmed(model, name) || spare(model, name) }
      end

      # @param allocator [String]
      # @return [String] name of a CSS variable, without its `--c-`
      def colour(allocator) = @colours.fetch(allocator)

      # An allocator with a setting is dashed: a second cue beside the colour. With the trim alone as its setting it
      # has the colour of the allocator without it.
      def dashed?(allocator) = allocator.include?(":")

      private

      def untrimmed(model, name)
        family = model.family(name)
        @colours[family] if name == "#{family}:#{Allocators::Trim::KEY}"
      end

      # A variant of culet takes vermilion when it is free.
      def spare(model, name)
        used = @colours.values
        return "vermilion" if model.family(name) == "culet" && !used.include?("vermilion")

        SPARE.min_by.with_index { |colour, index| [used.count(colour), index] }
      end
    end
  end
end
