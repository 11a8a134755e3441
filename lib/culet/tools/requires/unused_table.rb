# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "origin"
require_relative "unused"

module Culet
  module Requires
    # Unused code for a terminal: by gem, by file, and the largest pieces.
    class UnusedTable

      # @param document [Hash] of Unused
      # @param lines [Integer] how many of each list
      # @param color [Boolean]
      # @param unicode [Boolean]
      def initialize(document, lines: 15, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @document = document
        @lines = lines
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s
        return "#{Text::Lines.notes(@document["problems"])}\n" if @document["since"] == "now"

        "#{[heading, gems, files, pieces, Text::Lines.notes(@document["problems"] + limits)].compact.join("\n\n")}\n"
      end

      private

      def heading
        text = "#{Text::Lines.printable(Unused.subject(@document))}: #{mega(@document["unused_bytes"])} of #{mega(@document["iseq_bytes"])} MB of compiled code #{Unused.verdict(@document)}#{share}"
        @color ? "\e[1m#{text}\e[0m" : text
      end

      def share = Unused.percent(@document)&.then { |share| " (#{share} %)" }

      def mega(bytes) = Text::Size.cell(bytes, digits: 2)

      def kilo(bytes) = Text::Numbers.significant(bytes / 1e3)

      def gems = list("gem", @document["gems"], "files" => ->(one) { Text::Numbers.grouped(one["files"]) }) { |one| one["gem"] }

      def files = list("file", @document["files"].select { |one| one["unused_bytes"].positive? }) { |one| Origin.short(one["path"], one["gem"]) }

      def list(title, all, more = {})
        return if all.empty?

        shown = all.first(@lines)
        columns = { **more, "code kB" => ->(one) { kilo(one["iseq_bytes"]) }, "unused kB" => ->(one) { kilo(one["unused_bytes"]) }, "" => ->(one) { part(one) } }
        table = grid([[title, shown.map { |one| Text::Lines.printable(yield(one)) }, true], *columns.map { |heading, cell| [heading, shown.map(&cell), false] }])
        rest = all.drop(@lines)
        rest.empty? ? table : "#{table}\n#{Text::Numbers.count(rest.size, title)} more not shown, with #{kilo(rest.sum { |one| one["unused_bytes"] })} kB unused (--top)"
      end

      def part(one) = Unused.percent(one)&.then { |share| "#{share} %" } || "-"

      def pieces
        all = @document["files"].flat_map { |file| file["unused"].map { |one| [Origin.short(file["path"], file["gem"]), one] } }.max_by(@lines) { |_, one| one["iseq_bytes"] }
        return if all.empty?

        grid([["largest unused", all.map { |_, one| Text::Lines.printable(one["label"]) }, true], ["kB", all.map { |_, one| kilo(one["iseq_bytes"]) }, false],
              ["where", all.map { |path, one| "#{Text::Lines.printable(path)}:#{one["line"]}" }, true]])
      end

      # What cannot be seen is said with its size.
      def limits
        { "unseen_bytes" => "of code was loaded before it was followed", "evaluated_bytes" => "of code was evaluated from strings",
          "untold_bytes" => "is in methods without a line of their own (empty ones, def a = b)" }.filter_map do |key, words|
          "#{mega(@document[key])} MB #{words}, of which it is not known whether it ran" if @document[key].positive?
        end
      end

      def grid(columns) = Text::Table.render(columns, unicode: @unicode)
    end
  end
end
