# frozen_string_literal: true

require_relative "../../../benchmark/plan"

module Culet
  module Cow
    module Experiment
      # An interpreter on an allocator, as a candidate of the runs.
      Contender = Struct.new(:interpreter, :choice) do
        # @return [String]
        def name = "#{interpreter.name} on #{choice.spec}"
        alias_method :spec, :name

        # @return [Boolean] its program and its library were found
        def available? = true
      end

      # Which process collects garbage, after which work, and whether the parent warms up before the fork: a workload of
      # the runs.
      Variant = Struct.new(:key, :warm) do
        # @return [String]
        def name = "#{VARIANTS.fetch(key)}#{", warmed up before the fork" if warm}"

        def unprepared? = false
      end

      # key => title
      VARIANTS = { "parent" => "the parent collects",
                   "child" => "the child collects",
                   "frees" => "the child drops every eighth string and collects",
                   "mutates" => "the child changes every eighth string and collects" }.freeze

      # The runs of an experiment.
      class Plan < Benchmark::Plan
        DEFAULT_MILLIONS = 10.0

        # @return [Integer]
        attr_reader :strings

        # @param millions [Float] of strings, in millions
        # @param options [Hash] runs:, seed: and timeout_seconds: of Benchmark::Plan; the last is for one phase of a run
        def initialize(contenders:, variants:, millions: DEFAULT_MILLIONS, **options)
          super(workloads: variants, choices: contenders, baseline: nil, **options)
          @strings = (millions * 1_000_000).ceil
        end
      end
    end
  end
end
