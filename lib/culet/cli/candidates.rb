# frozen_string_literal: true

require_relative "../allocators"
require_relative "../benchmark/plan"
require_relative "../errors"
require_relative "../model/statistics"
require_relative "numbers"

module Culet
  module CLI
    # The options of the verbs that set allocators against each other: which, how often, in which order.
    module Candidates
      private

      # @param words [Array<String>] about --allocators
      def define_allocators(parser, *words)
        parser.on("--allocators A,B", *words) do |v|
          (options[:allocators] ||= []).concat(Culet::Benchmark::Plan.split_allocators(v))
        end
      end

      def define_baseline(parser)
        parser.on("--baseline NAME", "allocator to compare the others with (default: the first)") do |v|
          options[:baseline] = v
        end
      end

      # @param default [Integer] runs of each
      def define_runs(parser, default)
        parser.on("--runs N", "runs of each (default: #{default}; at least " \
                              "#{Culet::Statistics::LEAST_RUNS} to show a difference)") do |v|
          options[:runs] = whole("--runs", v, most: Numbers::MOST_RUNS)
        end
        parser.on("--seed N", "random seed of the order and the intervals") do |v|
          options[:seed] = whole("--seed", v, least: 0, most: Numbers::MOST_SEED)
        end
      end

      # @return [Integer] that was given, or is drawn
      def seed = @seed ||= options.fetch(:seed) { Random.new_seed % 1_000_000 }

      # @param default [Array<String>] candidates when none are named
      # @return [Array<Allocators::Choice>] each once
      # @raise [UsageError] when the option names none
      def candidates(default)
        choices = (options[:allocators] || default).map { |spec| Allocators.parse(spec) }.uniq(&:spec)
        if choices.empty?
          raise UsageError, "--allocators names no allocator; write e.g. --allocators glibc,jemalloc,culet"
        end

        choices
      end

      # @return [String] the candidate that the others are compared with
      # @raise [UsageError] when it is none of the candidates
      def baseline(choices)
        return choices.first.spec unless options[:baseline]

        wanted = Allocators.parse(options[:baseline]).spec
        return wanted if choices.any? { |choice| choice.spec == wanted }

        raise UsageError, "the baseline #{wanted} is not among #{choices.map(&:spec).join(", ")}; " \
                          "add it to --allocators"
      end
    end
  end
end
