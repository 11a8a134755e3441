# frozen_string_literal: true

require_relative "../allocators"
require "shellwords"
require_relative "../benchmark/plan"
require_relative "../benchmark/progress"
require_relative "../errors"
require_relative "../model/statistics"
require_relative "../system/interruption"
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
        option(parser, "--baseline NAME", "allocator to compare the others with (default: the first)")
      end

      def define_runs(parser)
        number(parser, "--runs N", "runs of each (default: #{Culet::Benchmark::Plan::DEFAULT_RUNS}; at least " \
                                   "#{Culet::Statistics::LEAST_RUNS} to show a difference)", most: Numbers::MOST_RUNS)
        number(parser, "--seed N", "random seed of the order and the intervals", least: 0, most: Numbers::MOST_SEED)
      end

      # @return [Integer] that was given, or is drawn
      def seed = @seed ||= options.fetch(:seed) { Random.new_seed % 1_000_000 }

      # @return [Array<Allocators::Choice>] each once
      # @raise [UsageError] when the option names none
      def candidates
        specs = options[:allocators] || Culet::Benchmark::Plan::DEFAULT_ALLOCATORS
        choices = specs.map { |spec| Allocators.parse(spec) }.uniq(&:spec)
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

      # Keeps the words, which the document shows.
      def split(argv)
        @given_words = argv.map(&:scrub)
        super
      end

      # The command line as given, with the seed that was drawn.
      def command_line
        words = @given_words.dup
        words.insert(words.index("--") || -1, "--seed", seed.to_s) unless options.key?(:seed)
        "culet #{verb} #{Shellwords.join(words)}"
      end

      # Makes the runs of a plan, until all are made or a signal comes.
      #
      # @param kind [Class] of progress
      # @yieldparam about [Hash] plan:, interruption: and progress: of a runner
      # @yieldreturn [#call] the runner
      # @return [Hash] the document
      def measure(plan, kind = Culet::Benchmark::Progress)
        @interruption = Culet::Interruption.new
        progress = kind.new(out: err, total: plan.schedule.size)
        runner = yield(plan: plan, interruption: @interruption, progress: progress)
        @interruption.watch { runner.call }
      end

      # @param failure [String] what is said where no run was completed
      # @return [Integer] exit status
      def conclude(document, failure)
        check_interruption(@interruption)
        raise Error, "#{failure}; see the reasons above" if document["results"].empty?

        EXIT_OK
      end
    end
  end
end
