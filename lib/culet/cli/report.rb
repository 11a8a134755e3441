# frozen_string_literal: true

require_relative "command"
require_relative "process_arguments"
require_relative "../tools/report"

module Culet
  module CLI
    # `culet report`: where the memory of processes is.
    class Report < Command
      include ProcessArguments

      BANNER = "culet report PID|NAME ... | SNAPSHOT"
      EXAMPLES = ["culet report 4242                   a running process; no restart needed",
                  "culet report puma                   the server, its workers, and their total",
                  "culet report before.snapshot --json"].freeze

      private

      def execute(words, *)
        if words.empty?
          raise UsageError, "no process given; write `culet report PID`, `culet report puma` or " \
                            "`culet report FILE.snapshot`"
        end

        words = all_named(words)
        deliver(render(words, all(words)))
        @failed ? EXIT_FAILED : EXIT_OK
      end

      def define(parser)
        define_names(parser)
        define_treatment(parser)
      end

      # Of several processes, one that has ended meanwhile does not keep the others from being shown.
      #
      # @return [Array<Culet::Scope::Snapshot, Culet::Scope::PackedSnapshot>] all of a series, or one for each word
      def all(words)
        return consistent(words.first) if words.size == 1

        errors = []
        found = words.filter_map do |word|
          consistent(word).last
        rescue Error => e
          errors << e
          nil
        end
        raise errors.first if found.empty?

        errors.each { |error| err.puts("culet: #{error.message}") }
        @failed = errors.any?
        found
      end

      def consistent(word)
        return packed_snapshots(word) unless Culet::Scope.process?(word)

        [Culet::Report.retry_until_consistent { snapshots(word, chunks: 0).last }]
      end

      def render(words, found)
        return JSON.generate(document(words, found)) if options[:json]
        if words.size == 1 && found.size > 1
          return "#{table(found.last)}\nThis is the last of #{found.size} snapshots; --json prints all.\n"
        end

        total = fitted { Culet::Report::Total.new(found.map(&:snapshot)) } if found.size > 1
        [*found.map { |one| table(one) }, total].compact.join("\n")
      end

      def table(moment) = fitted { Culet::Report::Table.new(moment.snapshot, color: color?) }

      def document(words, found)
        documents = found.map { |moment| Culet::Report::Document.new(moment.snapshot).to_h }
        return { "processes" => documents, **Culet::Report::Total.new(found.map(&:snapshot)).to_h } if words.size > 1

        documents.size == 1 ? documents.first : { "snapshots" => documents }
      end
    end
  end
end
