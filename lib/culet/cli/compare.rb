# frozen_string_literal: true

require "rbconfig"
require_relative "allocator_help"
require_relative "command"
require_relative "candidates"
require_relative "../tools/compare"

module Culet
  module CLI
    # `culet compare`: compares allocators on Ruby workloads.
    class Compare < Command
      include Candidates

      # What wrk can open from one address, and what a machine can hold of a workload.
      MOST_CONNECTIONS = 10_000
      MOST_SCALE = 1000
      # Width of a report that does not go to a terminal.
      FULL_COLUMNS = 100
      private_constant :MOST_CONNECTIONS, :MOST_SCALE, :FULL_COLUMNS

      BANNER = "culet compare [WORKLOAD...] [options] [-- COMMAND ...]"

      # @return [Array<String>] words that a completion may offer
      def known_words = [*engine::Workload.names, "all"]

      # @return [Array<String>] for --help
      def examples
        ["culet compare                               #{engine::Workload::DEFAULT.join(", ")}",
         "culet compare threads --html threads.html   one workload, with an HTML report",
         "culet compare all --runs 10 --json --out all.json",
         "culet compare --allocators glibc,jemalloc:narenas=2,culet -- ruby job.rb",
         "culet compare --allocators glibc,glibc:trim -- ruby job.rb",
         "culet compare --url http://127.0.0.1:3000/ -- bin/rails server"]
      end

      private

      def execute(words, command)
        return list if options[:list]
        raise Error, "culet compare needs Linux: it reads /proc" unless File.exist?("/proc/self/statm")

        check_destinations(:html)
        plan = plan(workloads(words, command))
        report(measure(plan) { |about| engine::Runner.new(ruby: ruby, **about) })
      end

      def engine = Culet::Compare

      def define(parser)
        define_what(parser)
        define_how(parser)
        parser.separator("")
        option(parser, "--html FILE", "write an HTML report with curves and all numbers")
        return unless help_asked?

        parser.separator("")
        AllocatorHelp.add_trim(parser)
        parser.separator("")
      end

      def define_what(parser)
        paragraph(parser, "WORKLOAD is one of #{engine::Workload.names.join(", ")}, or all. " \
                          "Without a workload and a command: #{engine::Workload::DEFAULT.join(", ")}.")
        option(parser, "--list", "describe the workloads")
        define_allocators(parser, "allocators, each NAME[:SETTING] or the path of a library; for the setting trim, " \
                                  "see below",
                          "default: #{Culet::Benchmark::Plan::DEFAULT_ALLOCATORS.join(",")}")
        define_baseline(parser)
        option(parser, "--url URL", "the command is a server; send the load to this local URL") do |v|
          engine::LoadTarget.parse(v)
        end
      end

      def define_how(parser)
        define_runs(parser)
        decimal(parser, "--timeout SECONDS", "time limit of one run (default: " \
                                             "#{Culet::Benchmark::Plan::DEFAULT_TIMEOUT_SECONDS.round})",
                most: Numbers::MOST_SECONDS)
        number(parser, "--duration SECONDS", "duration of the load on a server (default: " \
                                             "#{Culet::Benchmark::Plan::DEFAULT_DURATION_SECONDS})",
               most: Numbers::MOST_SECONDS)
        number(parser, "--connections N", "connections of the load (default: " \
                                          "#{Culet::Benchmark::Plan::DEFAULT_CONNECTIONS})", most: MOST_CONNECTIONS)
        decimal(parser, "--scale FACTOR", "amount of work of the built-in workloads (default: 1)", most: MOST_SCALE)
        option(parser, "--ruby PATH", "Ruby of the built-in workloads (default: this one)")
      end

      def list
        rows = engine::Workload::BUILT_IN.map do |name, (about, server, _)|
          { name: name, about: about, server: server }
        end
        return deliver(JSON.generate(workloads: rows)) && EXIT_OK if options[:json]

        deliver(rows.map { |row| format("%-10<name>s %<about>s", **row.slice(:name, :about)) }.join("\n"))
        EXIT_OK
      end

      def ruby = options.fetch(:ruby, RbConfig.ruby)

      def workloads(words, command)
        return command_workload(words, command) if command
        raise UsageError, "--url loads a command of yours, which goes after --" if options[:url]

        names = words.empty? ? engine::Workload::DEFAULT : words
        names = engine::Workload.names if names.include?("all")
        names.uniq.map { |name| engine::Workload.built_in(name, scale: options.fetch(:scale, 1.0), ruby: ruby) }
      end

      def command_workload(words, command)
        raise UsageError, "name workloads or give a command after --, not both" unless words.empty?
        raise UsageError, "there is no command after --" if command.empty?

        [engine::Workload.command(command, url: options[:url])]
      end

      def plan(workloads)
        choices = candidates
        given = { runs: options[:runs], timeout_seconds: options[:timeout], duration_seconds: options[:duration],
                  connections: options[:connections], scale: options[:scale] }.compact
        Culet::Benchmark::Plan.new(workloads: workloads, choices: choices, baseline: baseline(choices), seed: seed,
                                   command_line: command_line, **given)
      end

      def report(document)
        deliver(options[:json] ? JSON.generate(document) : text(document))
        write_file(options[:html], presentation("html", :Html).new(document).to_s) if options[:html]
        conclude(document, "no allocator completed a run")
      end

      def text(document)
        fitted(page_columns || FULL_COLUMNS) { presentation("table", :Table).new(document, color: color?) }
      end

      # The reports, and the gems they need, are loaded when one is asked for.
      def presentation(file, constant)
        require_relative "../tools/compare/report/#{file}"
        engine::Report.const_get(constant)
      end
    end
  end
end
