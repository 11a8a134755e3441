# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "subjects"
require_relative "../report"

module Culet
  module CLI
    # `culet diff`: what grew between two moments.
    class Diff < Command
      include Subjects

      def banner = "culet diff BEFORE AFTER | SERIES"

      def examples
        ["culet diff before.snapshot after.snapshot",
         "culet diff before.snapshot 4242         since then, until now",
         "culet diff series.snapshot              from its first to its last",
         "culet diff 4242 4243 --json             two workers"]
      end

      def execute(words, command)
        raise UsageError, "`culet diff` takes no command; name two snapshots, or a series" if command
        unless [1, 2].include?(words.size)
          raise UsageError, "which snapshots? Write `culet diff BEFORE AFTER`; `culet snapshot PID` takes one"
        end

        difference = Culet::Report::Difference.new(*sides(words))
        deliver(options[:json] ? JSON.generate(difference.to_h) : Culet::Report::DifferenceTable.new(difference, color: color?).to_s)
        EXIT_OK
      end

      private

      def define(parser)
        parser.separator("BEFORE and AFTER are snapshots or process numbers; of a series, the last one counts.")
        parser.separator("")
        define_treatment(parser)
      end

      def sides(words)
        return words.map { |word| moments(word, chunks: 0).last.snapshot } if words.size == 2

        all = moments(words.first, chunks: 0)
        return [all.first, all.last].map(&:snapshot) if all.size > 1

        raise UsageError, "#{words.first} is one moment; name another to compare it with: `culet diff BEFORE AFTER`"
      end
    end
  end
end
