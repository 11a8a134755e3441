# frozen_string_literal: true

require "json"
require "rbconfig"
require "shellwords"
require_relative "allocator_help"
require_relative "command"
require_relative "candidates"
require_relative "../tools/compare"
require_relative "../system/interruption"
require_relative "../benchmark/progress"
require_relative "../text/plot"

module Culet
  module CLI
    # `culet compare`: compares allocators on Ruby workloads.
    class Compare < Command
      include Candidates

      # What wrk can open from one address, and what a machine can hold of a workload.
      MOST_CONNECTIONS = 10_000
      MOST_SCALE = 1000
      # Of a report that does not go to a terminal.
      FULL_COLUMNS = 100
      private_constant :MOST_CONNECTIONS, :MOST_SCALE, :FULL_COLUMNS

      # @return [String] the usage of the verb
      def banner = "culet compare [WORKLOAD...] [options] [-- COMMAND ...]"

      # @return [Array<String>] words that a completion may offer
      def known_words = [*engine::Workload.names, "all"]

      # @return [Array<String>] examples for --help
      def examples
        ["culet compare                               #{engine::Workload::DEFAULT.join(", ")}",
         "culet compare threads --html threads.html   one workload, with an HTML report",
         "culet compare all --runs 10 --json --out all.json",
         "culet compare --allocators glibc,jemalloc:narenas=2,culet -- ruby job.rb",
         "culet compare --allocators glibc,glibc:trim -- ruby job.rb",
         "culet compare --url http://127.0.0.1:3000/ -- bin/rails server"]
      end

      # @return [Integer] exit status
      def execute(words, command)
        return list if options[:list]
        raise Error, "culet compare needs Linux: it reads /proc" unless File.exist?("/proc/self/statm")

        check_destinations
        workloads = workloads(words, command)
        plan = plan(workloads)
        interruption = Culet::Interruption.new
        document = interruption.watch { measure(plan, interruption) }
        report(document, interruption)
      end

      private

      def engine = Culet::Compare

      def define(parser)
        define_what(parser)
        define_how(parser)
        parser.separator("")
        parser.on("--html FILE", "write an HTML report with curves and all numbers") { |v| options[:html] = v }
        parser.on("--markdown FILE", "write the tables as Markdown") { |v| options[:markdown] = v }
        return unless help_asked?

        parser.separator("")
        AllocatorHelp.add_trim(parser)
        parser.separator("")
      end

      def define_what(parser)
        parser.separator("WORKLOAD is one of #{engine::Workload.names.join(", ")}, or all. " \
                         "Without a workload and a command: #{engine::Workload::DEFAULT.join(", ")}.")
        parser.separator("")
        parser.on("--list", "describe the workloads") { options[:list] = true }
        define_allocators(parser, "allocators, each NAME[:SETTING] or the path of a library; for the setting trim, " \
                                  "see below",
                          "default: #{Culet::Benchmark::Plan::DEFAULT_ALLOCATORS.join(",")}")
        define_baseline(parser)
        parser.on("--url URL", "the command is a server; send the load to this local URL") do |v|
          options[:url] = engine::LoadTarget.parse(v)
        end
      end

      def define_how(parser)
        define_runs(parser, Culet::Benchmark::Plan::DEFAULT_RUNS)
        seconds(parser, "--timeout SECONDS", :timeout, Numbers::MOST_SECONDS,
                "time limit of one run (default: #{Culet::Benchmark::Plan::DEFAULT_TIMEOUT_SECONDS.round})")
        number(parser, "--duration SECONDS", :duration, Numbers::MOST_SECONDS,
               "duration of the load on a server (default: #{Culet::Benchmark::Plan::DEFAULT_DURATION_SECONDS})")
        number(parser, "--connections N", :connections, MOST_CONNECTIONS,
               "connections of the load (default: #{Culet::Benchmark::Plan::DEFAULT_CONNECTIONS})")
        seconds(parser, "--scale FACTOR", :scale, MOST_SCALE, "amount of work of the built-in workloads (default: 1)")
        parser.on("--ruby PATH", "Ruby of the built-in workloads (default: this one)") { |v| options[:ruby] = v }
      end

      def number(parser, flag, key, most, text)
        parser.on(flag, text) { |v| options[key] = whole(flag[/\S+/], v, most: most) }
      end

      def seconds(parser, flag, key, most, text)
        parser.on(flag, text) { |v| options[key] = positive(flag[/\S+/], v, most: most) }
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
        choices = candidates(Culet::Benchmark::Plan::DEFAULT_ALLOCATORS)
        given = { runs: options[:runs], timeout_seconds: options[:timeout], duration_seconds: options[:duration],
                  connections: options[:connections], scale: options[:scale] }.compact
        Culet::Benchmark::Plan.new(workloads: workloads, choices: choices, baseline: baseline(choices), seed: seed,
                                   command_line: command_line, **given)
      end

      # The command line as given, with the seed that was drawn.
      def command_line
        words = given_words.map(&:scrub)
        words.insert(words.index("--") || -1, "--seed", seed.to_s) unless options.key?(:seed)
        "culet compare #{Shellwords.join(words)}"
      end

      # Keeps the words, which the record of the comparison shows.
      def split(argv)
        @given_words = argv.dup
        super
      end

      attr_reader :given_words

      # Before hours of measuring, not after.
      def check_destinations
        options.values_at(:html, :markdown, :out).compact.each { |path| AtomicFile.check(path) }
      end

      def measure(plan, interruption)
        progress = Culet::Benchmark::Progress.new(out: err, total: plan.schedule.size)
        engine::Runner.new(plan: plan, interruption: interruption, progress: progress, ruby: ruby).call
      end

      def report(document, interruption)
        deliver(options[:json] ? JSON.generate(document) : text(document))
        write(:html, "html", :Html, document)
        write(:markdown, "markdown", :Markdown, document)
        check_interruption(interruption)
        raise Error, "no allocator completed a run; see the reasons above" if document["results"].empty?

        EXIT_OK
      end

      def text(document)
        width = page_columns || FULL_COLUMNS
        report = presentation("table", :Table).new(document, color: color?)
        table = Text::Lines.within(width) { Text::Lines.fold(report.to_s) }
        return table unless !options[:out] && Text::Plot.supported?(io: out, env: ENV)

        require_relative "../benchmark/plots"
        [table, Culet::Benchmark::Plots.new(document, width: width, color: color?).to_s].join("\n")
      end

      def write(option, file, constant, document)
        path = options[option] or return

        AtomicFile.write(path, presentation(file, constant).new(document).to_s)
        err.puts("culet: wrote #{path}")
      end

      # The reports, and the gems they need, are loaded when one is asked for.
      def presentation(file, constant)
        require_relative "../tools/compare/report/#{file}"
        engine::Report.const_get(constant)
      end
    end
  end
end
