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

      # The runs of an experiment.
      class Plan
        DEFAULT_RUNS = 5
        DEFAULT_MILLIONS = 10.0
        DEFAULT_TIMEOUT_SECONDS = 300.0

        # A run to execute. run: its number within variant and contender; order: its number in the plan; both from 1.
        Turn = Struct.new(:variant, :contender, :run, :order)

        attr_reader :contenders, :variants, :strings, :runs, :seed, :timeout_seconds

        # @param contenders [Array<Contender>] the first is the baseline
        # @param variants [Array<Variant>]
        # @param millions [Float] of strings, in millions
        # @param runs [Integer] of each contender in each variant
        # @param seed [Integer] of the order and of the intervals
        # @param timeout_seconds [Float] for one phase of a run
        def initialize(contenders:, variants:, seed:, millions: DEFAULT_MILLIONS, runs: DEFAULT_RUNS,
                       timeout_seconds: DEFAULT_TIMEOUT_SECONDS)
          @contenders = contenders
          @variants = variants
          @strings = (millions * 1_000_000).ceil
          @runs = runs
          @seed = seed
          @timeout_seconds = timeout_seconds
        end

        # Round after round with every contender, each round in a random order.
        #
        # @return [Array<Turn>] the same for the same seed
        def turns
          random = Random.new(seed)
          rounds = variants.product((1..runs).to_a).flat_map do |variant, run|
            contenders.shuffle(random: random).map { |contender| [variant, contender, run] }
          end
          rounds.each_with_index.map { |(variant, contender, run), index| Turn.new(variant, contender, run, index + 1) }
        end
      end
    end
  end
end
