# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "difference"
require_relative "holdings"

module Culet
  module Report
    # A Difference for a terminal.
    class DifferenceTable
      # How many mappings, and arenas beyond the first, are worth a line.
      MOST = 12
      # What changed less would be shown as nought.
      LEAST_BYTES = 50_000
      private_constant :MOST, :LEAST_BYTES

      # @param difference [Difference]
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(difference, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @difference = difference
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = "#{[heading, levels, objects, arenas, slots, mappings].compact.join("\n\n")}\n"

      private

      attr_reader :difference

      def heading
        title = "#{side(difference.before)} to #{side(difference.after)}: #{change(difference.total)} MB"
        [bold(title), interval, (foreign unless difference.same_process?)].compact.join("\n")
      end

      def side(snapshot) = "#{Text::Lines.printable(snapshot.process.called)} (process #{snapshot.pid})"

      def interval
        seconds = difference.seconds
        "taken #{Text::Numbers.significant(seconds.abs)} s #{seconds.negative? ? "before it: did you mean them the other way round?" : "apart"}"
      end

      def foreign = Text::Lines.wrap("These are two processes: arenas are compared by their names.")

      def levels
        shown = difference.levels.reject { |entry| entry.before_bytes.zero? && entry.after_bytes.zero? }
        table("level", [*shown.map { |entry| [Ledger::TITLES.fetch(entry.name), entry] }, ["resident", difference.total]])
      end

      # Types whose number or bytes changed, with both.
      def objects
        numbers = difference.counts.to_h { |entry| [entry.name, entry] }
        changed = difference.holdings.select { |entry| entry.grown_bytes.nonzero? || numbers.fetch(entry.name).grown_bytes.nonzero? }.first(MOST)
        return if changed.empty?

        counts = changed.map { |entry| numbers.fetch(entry.name) }
        Text::Table.render([["held by Ruby's objects", changed.map { |entry| Text::Lines.printable(Holdings::TITLES.fetch(entry.name, entry.name)) }, true],
                     ["before MB", changed.map { |one| mega(one.before_bytes) }, false], ["after MB", changed.map { |one| mega(one.after_bytes) }, false],
                     ["grew by", changed.map { |one| change(one) }, false],
                     ["more of them", counts.map { |one| Text::Numbers.grouped(one.grown_bytes) }, false]], unicode: @unicode)
      end

      def arenas
        entries = difference.arenas.zip(difference.arenas_used).flat_map do |system, used|
          [["#{Text::Lines.printable(system.name)}: from the system", system], ["#{Text::Lines.printable(used.name)}: in use, resident or not", used]]
        end
        changed("arena", entries)
      end

      def mappings = changed("mappings, resident", difference.mappings.map { |entry| [Text::Lines.printable(entry.name), entry] })

      def changed(heading, entries)
        changed = entries.reject { |_, entry| entry.grown_bytes.zero? }.sort_by { |_, entry| -entry.grown_bytes.abs }
        shown = changed.first(MOST).take_while { |_, entry| entry.grown_bytes.abs >= LEAST_BYTES }
        return if shown.empty?

        text = table(heading, shown)
        more = changed.size - shown.size
        more.positive? ? "#{text}\nand #{more} more that changed less (--json has all)" : text
      end

      def table(heading, entries)
        cells = entries.map(&:last)
        Text::Table.render([[heading, entries.map(&:first), true], ["before MB", cells.map { |one| mega(one.before_bytes) }, false],
                     ["after MB", cells.map { |one| mega(one.after_bytes) }, false], ["grew by", cells.map { |one| change(one) }, false]], unicode: @unicode)
      end

      def slots
        sizes = difference.slots
        return if sizes.empty?

        columns = { "slot bytes" => "slot_bytes", "live before" => "before_live", "after" => "after_live", "free before" => "before_free", "after " => "after_free" }
        Text::Table.render(columns.map { |heading, key| [heading, sizes.map { |one| Text::Numbers.grouped(one[key]) }, false] }, unicode: @unicode)
      end

      def mega(bytes) = Text::Size.cell(bytes)

      def change(entry)
        text = mega(entry.grown_bytes)
        return "0" if entry.grown_bytes.zero?

        entry.grown_bytes.positive? ? "+#{text}" : text
      end

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
    end
  end
end
