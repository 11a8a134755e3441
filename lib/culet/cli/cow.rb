# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "subjects"
require_relative "../cow"
require_relative "../size"

module Culet
  module CLI
    # `culet cow`: what forked processes share with their parent, and what they stopped sharing.
    class Cow < Command
      include Subjects

      DEFAULT_SECONDS = 2.0
      CLEAR = "\e[H\e[2J"
      EXPERIMENT = "experiment"
      private_constant :DEFAULT_SECONDS, :CLEAR, :EXPERIMENT

      def banner = "culet cow PID ... | experiment [...]"

      # `culet cow experiment` has options of its own.
      def call(argv)
        return super unless argv.first == EXPERIMENT

        require_relative "cow_experiment"
        CowExperiment.new(out: out, err: err).call(argv.drop(1))
      end

      def examples
        ["culet cow $(pgrep -o puma)                     the master's number: its workers are found",
         "culet cow 4242 --html cow.html                 a map of each process: what it stopped sharing, page by page",
         "culet cow 4242 --watch 5                       again every five seconds",
         "culet cow 4242 --max-private 80MB              exits with 3 when a worker has more for itself",
         "culet cow 4242 --json",
         "culet cow experiment --help                    the laboratory: a fork and two collections, on any interpreter and allocator"]
      end

      def execute(words, command)
        raise UsageError, "`culet cow` takes no command yet; give it a process number, e.g. `culet cow 4242`" if command

        words = subjects(words)
        options[:watch] ? watch(words) : once(words)
      end

      private

      def define(parser)
        parser.separator("What a page costs is paid by all who share it; a worker that writes to it, or whose allocator does, pays alone.")
        parser.separator("")
        parser.on("--max-private SIZE", "exit with 3 when a worker has more than SIZE (80MB, 64MiB) for itself") { |v| options[:limit] = size(v) }
        parser.on("--html FILE", "write a page with the map of each process, coloured by what it shares") { |v| options[:html] = v }
        parser.on("--watch [SECONDS]", "look again, every two seconds or as often as said, until Ctrl-C;", "with --json one document per line") do |v|
          options.merge!(watch: DEFAULT_SECONDS, watch_word: v)
        end
        define_treatment(parser)
      end

      # `--watch 4242` alone is about process 4242.
      def subjects(words)
        word = options[:watch_word]
        if words.empty? && word
          words = [word]
        elsif word
          options[:watch] = seconds(word)
        end
        raise UsageError, "which process? Write `culet cow PID`, e.g. `culet cow $(pgrep -o puma)`" if words.empty?

        words
      end

      def seconds(text)
        value = Float(text, exception: false)
        return value if value&.positive? && value.finite?

        raise UsageError, "--watch takes seconds, e.g. 5 or 0.5, not #{text.inspect}"
      end

      def size(text)
        Culet::Size.parse(text) || raise(UsageError, "--max-private takes a size, e.g. 80MB or 64MiB, not #{text.inspect}")
      end

      def once(words)
        family = look(words)
        draw(family) if options[:html]
        deliver(render(family))
        raise Error, family.problems.first if family.read_members.empty?

        limit(family)
      end

      def watch(words)
        loop do
          family = look(words)
          out.write(CLEAR) if out.tty? && !options[:out] && !options[:json]
          deliver(render(family))
          out.flush
          status = limit(family)
          return status unless status == EXIT_OK

          sleep(options[:watch])
        end
      end

      def look(words) = Culet::Cow::Family.new(words, progress: progress, **treatment)

      # @return [Proc, nil] says on a terminal how far it is
      def progress
        return unless err.tty?

        ->(number, all) { err.write("\rculet: reading process #{number} of #{all}#{"\r\e[K" if number == all}") if all > 1 }
      end

      def render(family)
        return JSON.generate(Culet::Cow::Document.new(family).to_h) if options[:json]

        Culet::Cow::Table.new(family, color: color?).to_s
      end

      def draw(family)
        require_relative "../cow/picture"
        return if family.read_members.empty?

        picture = Culet::Cow::Picture.new(family)
        AtomicFile.write(options[:html], picture.to_s)
        err.puts("culet: wrote #{options[:html]}")
        err.puts("culet: left out of it: #{picture.left_out.join(", ")}") if picture.left_out.any?
      rescue Culet::Scope::Malformed => e
        raise Error, "what was read contradicts itself: #{e.message}"
      end

      def limit(family)
        most = options[:limit] or return EXIT_OK

        over = family.workers.select { |worker| worker.private_bytes > most }
        over.each { |worker| err.puts(format("culet: process %d has %.1f MB for itself, more than %.1f MB", worker.pid, worker.private_bytes / 1e6, most / 1e6)) }
        over.empty? ? EXIT_OK : EXIT_LIMIT
      end
    end
  end
end
