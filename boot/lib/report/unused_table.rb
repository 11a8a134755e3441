# frozen_string_literal: true

require_relative "../../../lib/culet/text/view"
require_relative "../../../lib/culet/model/origin"
require_relative "unused"

module Culet
  module Boot
    # Unused code, for a terminal: by gem, by file, and the largest pieces.
    class UnusedTable < Text::View
      # @param document [Hash] of Unused
      # @param lines [Integer] rows of each list
      # @param options [Hash] as for Text::View
      def initialize(document, lines: 15, **options)
        super(**options)
        @document = document
        @lines = lines
      end

      private

      def sections
        return [note_lines(@document["problems"])] if @document["since"] == "now"

        [heading, gems, files, pieces, note_lines(@document["problems"] + limits)]
      end

      def heading
        unused, all = @document.values_at("unused_bytes", "iseq_bytes").map { |bytes| mega(bytes) }
        bold("#{printable(Unused.subject(@document))}: #{unused} of #{all} MB of compiled code " \
             "#{Unused.verdict(@document)}#{share}")
      end

      def share = Unused.percent(@document)&.then { |share| " (#{share} %)" }

      def mega(bytes) = super(bytes, digits: 2)

      def kilo(bytes) = Text::Numbers.significant(bytes / 1e3)

      def gems = list("gem", @document["gems"], "files" => ->(one) { number(one["files"]) }) { |one| one["gem"] }

      def files
        unused = @document["files"].select { |one| one["unused_bytes"].positive? }
        list("file", unused) { |one| Origin.short(one["path"], one["gem"]) }
      end

      def list(title, all, more = {})
        return if all.empty?

        shown = all.first(@lines)
        columns = { **more, "code kB" => ->(one) { kilo(one["iseq_bytes"]) },
                    "unused kB" => ->(one) { kilo(one["unused_bytes"]) }, "" => ->(one) { part(one) } }
        table = grid([[title, shown.map { |one| printable(yield(one)) }, true],
                      *columns.map { |heading, cell| [heading, shown.map(&cell), false] }])
        rest = all.drop(@lines)
        return table if rest.empty?

        unused = kilo(rest.sum { |one| one["unused_bytes"] })
        "#{table}\n#{count(rest.size, title)} more not shown, with #{unused} kB unused (--top)"
      end

      def part(one) = Unused.percent(one)&.then { |share| "#{share} %" } || "-"

      def pieces
        located = @document["files"].flat_map do |file|
          file["unused"].map { |one| [Origin.short(file["path"], file["gem"]), one] }
        end
        all = located.max_by(@lines) { |_, one| one["iseq_bytes"] }
        return if all.empty?

        grid([["largest unused", all.map { |_, one| printable(one["label"]) }, true],
              ["kB", all.map { |_, one| kilo(one["iseq_bytes"]) }, false],
              ["location", all.map { |path, one| "#{printable(path)}:#{one["line"]}" }, true]])
      end

      # Code of unknown use.
      def limits
        words = { "unseen_bytes" => "of code was loaded before coverage started",
                  "evaluated_bytes" => "of code was evaluated from strings",
                  "untold_bytes" => "of code is in methods without a line of their own (empty ones, def a = b)" }
        words.filter_map do |key, text|
          "#{mega(@document[key])} MB #{text}; whether it ran is unknown" if @document[key].positive?
        end
      end
    end
  end
end
