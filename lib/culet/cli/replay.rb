# frozen_string_literal: true

require "shellwords"
require_relative "command"
require_relative "candidates"
require_relative "../tools/replay"

module Culet
  module CLI
    # `culet replay`: a trace through allocators, side by side.
    class Replay < Command
      include Candidates

      TOUCHES = %w[none page line all check].freeze
      BANNER = "culet replay TRACE [options]"
      EXAMPLES = ["culet trace -o job.trace -- ruby job.rb",
                  "culet replay job.trace                six allocators, " \
                  "#{Culet::Benchmark::Plan::DEFAULT_RUNS} runs each",
                  "culet replay job.trace --allocators jemalloc,culet --runs 10",
                  "culet replay job.trace --paced        with the pauses of the program",
                  "culet replay job.trace --info         a summary of the trace"].freeze
      private_constant :TOUCHES

      private

      def execute(words, *)
        unless words.size == 1
          raise UsageError, "no trace given; write `culet replay TRACE`; `culet trace -o TRACE -- COMMAND` records one"
        end

        trace = Culet::Replay::TraceFile.new(words.first)
        return describe(trace) if options[:info]
        return list(trace) if options[:list]

        compare(trace)
      end

      def instead = "`culet trace -- COMMAND` records one"

      def define(parser)
        paragraph(parser, "TRACE is a file of `culet trace`. The trace of a forked process is replayed after the " \
                          "operations of its parents before the fork, if their files are beside it.")
        option(parser, "--info", "print a summary of the trace and exit")
        option(parser, "--list", "print the operations and exit: index, thread, name, block, bytes, alignment")
        define_allocators(parser, "allocators, each NAME[:KEY=VALUE]",
                          "default: #{Culet::Benchmark::Plan::DEFAULT_ALLOCATORS.join(",")}")
        define_baseline(parser)
        define_runs(parser)
        number(parser, "--timeout SECONDS", "time limit of one run (default: none)", most: Numbers::MOST_SECONDS)
        define_play(parser)
      end

      def define_play(parser)
        option(parser, "--paced", "keep the recorded pauses, for allocators that return memory by time")
        option(parser, "--threads N", "1 replays on one thread (default: as many as were recorded)") { |v| single(v) }
        option(parser, "--touch HOW", TOUCHES,
               "bytes written to each block: #{TOUCHES.join(", ")} (default: line, one " \
               "byte of each 64; check writes all and verifies them)")
      end

      def single(text)
        return true if text == "1"

        raise UsageError, "--threads takes 1; without it, the replay has as many threads as were recorded"
      end

      def replay_options
        Culet::Replay::Program::Options.new(touch: options[:touch], paced: options[:paced],
                                            single: options[:threads])
      end

      def program(trace) = Culet::Replay::Program.new(trace.path, options: replay_options)

      def describe(trace)
        facts = { **trace.to_h, **program(trace).info }
        lines = facts.map { |key, value| "#{key.tr("_", " ").ljust(22)}#{fact(value)}" }
        deliver(formatted(facts) { lines.join("\n") })
        EXIT_OK
      end

      def fact(value)
        case value
        when Array then Shellwords.join(value)
        when nil then "-"
        else value.to_s
        end
      end

      def list(trace)
        raise UsageError, "--list prints plain lines; use --info with --json" if options[:json]

        deliver(program(trace).operations)
        EXIT_OK
      end

      def compare(trace)
        document = measure(plan(trace)) { |about| Culet::Replay::Runner.new(options: replay_options, **about) }
        deliver(formatted(document) do
          require_relative "../tools/replay/table"
          Culet::Replay::Table.new(document, color: color?)
        end)
        conclude(document, "no allocator completed the trace")
      end

      def plan(trace)
        choices = candidates
        refuse_trim(choices)
        Culet::Benchmark::Plan.new(workloads: [trace], choices: choices, baseline: baseline(choices),
                                   seed: seed, command_line: command_line,
                                   runs: options.fetch(:runs, Culet::Benchmark::Plan::DEFAULT_RUNS),
                                   timeout_seconds: options[:timeout])
      end

      # Trims follow garbage collections, of which a trace knows nothing.
      def refuse_trim(choices)
        trimmed = choices.find { |choice| choice.trim.mode } or return

        raise UsageError, "#{trimmed.spec} makes Ruby trim, and a replay has no Ruby; " \
                          "use `culet compare`, which runs the program"
      end
    end
  end
end
