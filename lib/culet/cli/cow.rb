# frozen_string_literal: true

require_relative "command"
require_relative "command_run"
require_relative "process_arguments"
require_relative "../system/interruption"
require_relative "../tools/cow"
require_relative "../text/size"

module Culet
  module CLI
    # `culet cow`: which memory forked processes share with their parent.
    class Cow < Command
      include CommandRun
      include ProcessArguments

      SAMPLE_SECONDS = 1.0
      EXPERIMENT = "experiment"
      # Workers are alike.
      WRITES = 1
      # Workers of one family.
      MOST_WORKERS = 100_000
      private_constant :SAMPLE_SECONDS, :EXPERIMENT, :WRITES, :MOST_WORKERS

      BANNER = "culet cow PID|NAME ... | -- COMMAND ... | experiment ..."
      WORDS = [EXPERIMENT].freeze
      EXAMPLES = ["culet cow puma                            a server by name, with its workers",
                  "culet cow 4242 --html cow.html            a map of shared and private pages",
                  "culet cow 4242 --classes                  classes of objects on them",
                  "culet cow 4242 --every 5s --for 10m       sharing over ten minutes",
                  "culet cow -- bundle exec puma             a command, from start to end",
                  "culet cow 4242 --max-private 80MB         exit 3 above this limit",
                  "culet cow 4242 --json",
                  "culet cow experiment --help               a fork experiment on any interpreter"].freeze

      # `culet cow experiment` has options of its own.
      def call(argv)
        return super unless argv.first == EXPERIMENT

        require_relative "cow_experiment"
        CowExperiment.new(out: out, err: err).call(argv.drop(1))
      end

      private

      def execute(words, command)
        check(words, command)
        check_destinations(:html)
        return run(command) if command

        words = roots_named(words)
        options[:every] ? follow(words) : conclude(look(words))
      end

      def define(parser)
        paragraph(parser, "Forked processes share each page until one of them, or its allocator, writes to it.")
        define_names(parser)
        option(parser, "--max-private SIZE",
               "exit 3 if a worker has more private memory than SIZE (80MB, 64MiB)") do |v|
          bytes("--max-private", v)
        end
        number(parser, "--writes N", "find the writes that unshared the pages of the N workers with the fewest " \
                                     "shared pages (default: #{WRITES})", least: 0, most: MOST_WORKERS)
        option(parser, "--classes", "list the classes of the objects on unshared pages; the process must have loaded " \
                                    "culet/agent")
        option(parser, "--html FILE", "write an HTML map of each process that shows its shared and private pages")
        duration(parser, "--every TIME", "sample the sizes that the kernel reports at this interval (10s, 5m) until " \
                                         "Ctrl-C, --for, or the end of the process")
        duration(parser, "--for TIME", "stop after TIME (30m, 1h)")
        define_treatment(parser)
      end

      def check(words, command)
        check_subject(words, command, "`culet cow PID`, `culet cow puma`")
        raise UsageError, "--for needs --every, e.g. --every 10s --for 1h" if options[:for] && !options[:every]
        return unless options[:for] && command

        raise UsageError, "--for cannot be used with a command, which is observed until it ends"
      end

      # The kernel's figures for a while, then a whole reading.
      def follow(words)
        pids = words.map { |word| Processes::Live.find(word).pid }
        history = Culet::Cow::History.new(pids)
        interruption = Culet::Interruption.new
        family = nil
        interruption.watch do
          interruption.at_intervals(options[:every], options[:for]) { history.take && !interruption.requested? }
          family = look(pids) if Processes::Cpu.start_ticks(pids.first)
        end
        raise Error, "process #{pids.first} ended after #{history.samples.size} samples" unless family

        status = conclude(family, history)
        interruption.requested? ? interruption.exit_status : status
      end

      def run(words)
        command = launch(words, preload: false) do |path|
          Culet::Cow::Command.new(words, program: path, every_seconds: options.fetch(:every, SAMPLE_SECONDS),
                                         **looking).call
        end
        unless command.tree
          reason = ": it #{Foreground.ending(command.status)}" unless command.status.success?
          raise Foreground.error("#{words.first} ended before it could be read#{reason}", command.status)
        end

        status = conclude(command.tree, command.history)
        command.status.success? ? status : ended(command.status)
      end

      def look(words) = Culet::Cow::ProcessTree.new(words, progress: progress, **looking)

      # @return [Hash] for Culet::Cow::ProcessTree
      def looking
        { writes: options.fetch(:writes, WRITES), classes: options.fetch(:classes, false), **treatment }
      end

      # @return [Proc, nil] reports progress on a terminal
      def progress
        return if !err.tty? || ENV["TERM"] == "dumb"

        lambda do |number, all|
          err.write("\rculet: reading process #{number} of #{all}#{"\r\e[K" if number == all}") if all > 1
        end
      end

      # @return [Integer] exit status
      def conclude(family, history = nil)
        draw(family, history) if options[:html]
        deliver(formatted(Culet::Cow::Document.new(family, history: history)) do
          Culet::Cow::Table.new(family, history: history, color: color?)
        end)
        raise Error, family.problems.first if family.read_members.empty?

        limit(family)
      end

      def draw(family, history)
        require_relative "../tools/cow/map_page"
        return if family.read_members.empty?

        picture = Culet::Cow::MapPage.new(family, history: history)
        write_file(options[:html], picture.to_s)
        err.puts("culet: not drawn: #{picture.left_out.join(", ")}") if picture.left_out.any?
      rescue Culet::Scope::Malformed => e
        raise Error, "the data read is inconsistent: #{e.message}"
      end

      def limit(family)
        most = options[:max_private] or return EXIT_OK

        over = family.workers.select { |worker| worker.private_bytes > most }
        over.each do |worker|
          size = Text::Size.limit(worker.private_bytes, most)
          err.puts("culet: process #{worker.pid} has #{size} of private memory, more than #{Text::Size.limit(most)}")
        end
        over.empty? ? EXIT_OK : EXIT_LIMIT
      end
    end
  end
end
