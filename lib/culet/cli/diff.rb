# frozen_string_literal: true

require_relative "command"
require_relative "pictures"
require_relative "process_arguments"
require_relative "../tools/report"

module Culet
  module CLI
    # `culet diff`: what grew between two moments.
    class Diff < Command
      include ProcessArguments
      include Pictures

      BANNER = "culet diff BEFORE AFTER | SERIES [--html FILE]"
      EXAMPLES = ["culet diff before.snapshot after.snapshot",
                  "culet diff before.snapshot 4242      from then to now",
                  "culet diff series.snapshot           from the first to the last of a series",
                  "culet diff before.snapshot after.snapshot --html both.html",
                  "culet diff 4242 4243 --json          two workers"].freeze

      private

      def execute(words, *)
        unless [1, 2].include?(words.size)
          raise UsageError, "give two snapshots: `culet diff BEFORE AFTER`; `culet snapshot PID` takes one"
        end

        both = sides(words)
        drawing(words) { write_html(both, options[:html], changes: true) } if options[:html]
        difference = Culet::Report::Difference.new(*both)
        deliver(formatted(difference) { Culet::Report::DifferenceTable.new(difference, color: color?) })
        EXIT_OK
      end

      def define(parser)
        paragraph(parser, "BEFORE and AFTER are snapshots or processes (by number or name). Of a series, the " \
                          "last snapshot counts.")
        option(parser, "--html FILE", "also write an HTML map that shows the changes, page by page")
        define_treatment(parser)
      end

      def sides(words)
        chunks = options[:html] ? nil : 0
        return words.map { |word| packed_snapshots(one_named(word), chunks: chunks).last.snapshot } if words.size == 2

        all = packed_snapshots(words.first, chunks: chunks)
        return [all.first, all.last].map(&:snapshot) if all.size > 1

        raise UsageError, "#{words.first} has one snapshot; give another to compare it with: `culet diff BEFORE AFTER`"
      end
    end
  end
end
