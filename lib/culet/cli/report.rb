# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "subjects"
require_relative "../report"

module Culet
  module CLI
    # `culet report`: where the memory of running processes is, level by level.
    class Report < Command
      include Subjects

      DEFAULT_SECONDS = 2.0
      CLEAR = "\e[H\e[2J"
      ATTEMPTS = 3
      private_constant :DEFAULT_SECONDS, :CLEAR, :ATTEMPTS

      def banner = "culet report PID ... | SNAPSHOT"

      def examples
        ["culet report 4242                     a running process, as it is: nothing is restarted or preloaded",
         "culet report $(pgrep puma)            several, and their sum by PSS",
         "culet report 4242 --watch 5           again every five seconds",
         "culet report before.snapshot --json"]
      end

      def execute(words, command)
        raise UsageError, "`culet report` takes no command; give it a process number, e.g. `culet report 4242`" if command

        words = subjects(words)
        options[:watch] ? watch(words) : show(words)
        EXIT_OK
      end

      private

      def define(parser)
        define_treatment(parser)
        parser.on("--watch [SECONDS]", "look again, every two seconds or as often as said, until Ctrl-C;", "with --json one document per line") do |v|
          options.merge!(watch: DEFAULT_SECONDS, watch_word: v)
        end
      end

      # `--watch 4242` alone is about process 4242.
      def subjects(words)
        word = options[:watch_word]
        return checked([word]) if words.empty? && word

        options[:watch] = seconds(word) if word
        checked(words)
      end

      def checked(words)
        if words.empty?
          raise UsageError, "which process? Write `culet report PID`, e.g. `culet report $(pgrep -o puma)`, or name a snapshot"
        end
        return words unless options[:watch]

        words.each { |word| raise UsageError, "--watch looks at running processes; #{word} is no process number" unless Culet::Scope.process?(word) }
      end

      def seconds(text)
        value = Float(text, exception: false)
        return value if value&.positive? && value.finite?

        raise UsageError, "--watch takes seconds, e.g. 5 or 0.5, not #{text.inspect}"
      end

      def show(words) = deliver(render(words.flat_map { |word| steady(word) }))

      # A process that grows or shrinks while it is read does not add up. It is read again then, and the best one counts.
      def steady(word)
        return snapshots(word) unless Culet::Scope.process?(word)

        taken = []
        until taken.size == ATTEMPTS || (taken.any? && Culet::Report::Ledger.new(taken.last).explained?)
          taken.concat(snapshots(word, chunks: 0))
        end
        taken.min_by { |snapshot| Culet::Report::Ledger.new(snapshot).unexplained_bytes.abs }
      end

      def watch(words)
        loop do
          text = render(words.flat_map { |word| steady(word) })
          out.write(CLEAR) if out.tty? && !options[:out] && !options[:json]
          deliver(text)
          out.flush
          sleep(options[:watch])
        end
      end

      def render(snapshots)
        return JSON.generate(document(snapshots)) if options[:json]

        together = several_processes?(snapshots)
        tables = (together ? snapshots : snapshots.last(1)).map { |snapshot| Culet::Report::Table.new(snapshot, color: color?).to_s }
        tables << Culet::Report::Total.new(snapshots).to_s if together
        tables << "the last of #{snapshots.size} snapshots; --json has all\n" if !together && snapshots.size > 1
        tables.join("\n")
      end

      # A series is several reports of one process, which have no sum.
      def several_processes?(snapshots) = snapshots.size > 1 && snapshots.map(&:pid).uniq.size == snapshots.size

      def document(snapshots)
        documents = snapshots.map { |snapshot| Culet::Report::Document.new(snapshot).to_h }
        return documents.first if documents.size == 1
        return { "snapshots" => documents } unless several_processes?(snapshots)

        { "processes" => documents, **Culet::Report::Total.new(snapshots).to_h }
      end
    end
  end
end
