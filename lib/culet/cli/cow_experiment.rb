# frozen_string_literal: true

require_relative "candidates"
require_relative "command"
require_relative "../tools/cow/experiment"

module Culet
  module CLI
    # `culet cow experiment`: what a fork shares and what two garbage collections leave of it, on any interpreter and
    # allocator.
    class CowExperiment < Command
      include Candidates

      Experiment = Culet::Cow::Experiment
      WARMTHS = { "no" => [false], "yes" => [true], "both" => [false, true] }.freeze
      # Strings, of forty bytes and more each.
      MOST_MILLIONS = 100_000
      private_constant :Experiment, :WARMTHS, :MOST_MILLIONS

      # @return [String] name of the verb
      def verb = "cow experiment"

      # @return [String] one line for the overview
      def summary = "measure how much a forked child shares after garbage collections"

      BANNER = "culet cow experiment [--with INTERPRETER ...] [options]"
      EXAMPLES = ["culet cow experiment                        this Ruby; the parent runs GC",
                  "culet cow experiment --with ruby --with python3 --allocators glibc,culet",
                  "culet cow experiment --with /opt/ruby/bin/ruby --variants all --warm both",
                  "culet cow experiment --with node --script mine.js       another interpreter"].freeze

      private

      def execute(words, *)
        if words.any?
          raise UsageError, "`culet cow experiment` takes options only, not #{words.first.inspect}; " \
                            "give interpreters by --with"
        end

        document = measure(plan, Experiment::Progress) { |about| Experiment::Engine.new(**about) }
        deliver(formatted(document) { Experiment::Table.new(document, color: color?) })
        conclude(document, "no contender completed a run")
      end

      def define(parser)
        parser.on("--with INTERPRETER",
                  "a Ruby or Python, with its arguments; may be repeated (default: this Ruby)") do |v|
          (options[:with] ||= []) << v
        end
        option(parser, "--script FILE", "the script to run (default: the ones for Ruby and Python 3)")
        define_allocators(parser, "allocators, each NAME[:KEY=VALUE] (default: glibc,culet)")
        option(parser, "--variants A,B", "#{Experiment::VARIANTS.keys.join(", ")}, or all (default: parent)",
               *Experiment::VARIANTS.map { |key, words| "  #{key}: #{words}" })
        option(parser, "--warm no|yes|both", "warm the parent up before the fork (default: no)")
        decimal(parser, "--millions N", "millions of strings (default: #{Experiment::Plan::DEFAULT_MILLIONS.round})",
                most: MOST_MILLIONS)
        define_runs(parser)
        default_timeout = Experiment::Plan::DEFAULT_TIMEOUT_SECONDS
        decimal(parser, "--timeout SECONDS", "time limit of one phase (default: #{default_timeout.round})",
                most: Numbers::MOST_SECONDS)
      end

      def plan
        given = { millions: options[:millions], runs: options[:runs], timeout_seconds: options[:timeout] }.compact
        Experiment::Plan.new(contenders: contenders, variants: variants, seed: seed, **given)
      end

      # An allocator that is not installed is known before anything runs.
      def contenders
        script = script_file
        interpreters = options.fetch(:with, [RbConfig.ruby]).map { |text| Experiment::Interpreter.new(text, script: script) }
        choices = options.fetch(:allocators, %w[glibc culet]).map { |text| Allocators.parse(text).tap(&:library) }
        interpreters.product(choices).map { |pair| Experiment::Contender.new(*pair) }.uniq(&:name)
      end

      def script_file
        path = options[:script] or return
        raise Error, "there is no file #{path}; --script takes the script to run" unless File.file?(path)

        File.expand_path(path)
      end

      def variants
        keys = options.fetch(:variants, "parent").split(",")
        keys = Experiment::VARIANTS.keys if keys == ["all"]
        unknown = keys - Experiment::VARIANTS.keys
        if unknown.any? || keys.empty?
          raise UsageError, "there is no variant #{unknown.first.inspect}; the known ones are " \
                            "#{Experiment::VARIANTS.keys.join(", ")}, or all"
        end

        warmths = WARMTHS.fetch(options.fetch(:warm, "no")) do
          raise UsageError, "--warm takes no, yes or both, not #{options[:warm].inspect}"
        end
        keys.product(warmths).map { |pair| Experiment::Variant.new(*pair) }
      end
    end
  end
end
