# frozen_string_literal: true

module Culet
  module Cow
    module Experiment
      # An interpreter on an allocator.
      Contender = Struct.new(:interpreter, :choice) do
        # @return [String]
        def name = "#{interpreter.name} on #{choice.spec}"
      end

      # Which process collects garbage, after which work, and whether the parent warms up before the fork.
      Variant = Struct.new(:key, :warm) do
        # @return [String]
        def name = "#{VARIANTS.fetch(key)}#{", warmed up before the fork" if warm}"
      end

      # key => title
      VARIANTS = { "parent" => "the parent collects",
                   "child" => "the child collects",
                   "frees" => "the child drops every eighth string and collects",
                   "mutates" => "the child changes every eighth string and collects" }.freeze
    end
  end
end
