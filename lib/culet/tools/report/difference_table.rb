# frozen_string_literal: true

require_relative "../../text/view"
require_relative "difference"
require_relative "holdings"

module Culet
  module Report
    # A Difference for a terminal.
    class DifferenceTable < Text::View
      # How many mappings, and arenas beyond the first, have a line.
      MOST = 12
      # A smaller change would be printed as 0.
      LEAST_BYTES = 50_000
      private_constant :MOST, :LEAST_BYTES

      private

      def difference = @subject

      def sections = [heading, levels, objects, arenas, slots, mappings]

      def heading
        title = "#{side(difference.before)} to #{side(difference.after)}: #{change(difference.total)} MB"
        foreign = wrap("These are two processes; arenas are compared by name.") unless difference.same_process?
        [bold(title), interval, foreign].compact.join("\n")
      end

      def side(snapshot) = "#{printable(snapshot.process.called)} (process #{snapshot.pid})"

      def interval
        seconds = difference.seconds
        order = seconds.negative? ? "before the first: exchange the two" : "apart"
        "#{Text::Numbers.significant(seconds.abs)} s #{order}"
      end

      def levels
        shown = difference.levels.reject { |entry| entry.before_bytes.zero? && entry.after_bytes.zero? }
        levels = shown.map { |entry| [Levels::TITLES.fetch(entry.name), entry] }
        table("level", [*levels, ["resident", difference.total]])
      end

      # Types whose number or bytes changed.
      def objects
        numbers = difference.counts.to_h { |entry| [entry.name, entry] }
        changed = difference.holdings.select do |entry|
          entry.grown_bytes.nonzero? || numbers.fetch(entry.name).grown_bytes.nonzero?
        end.first(MOST)
        return if changed.empty?

        counts = changed.map { |entry| numbers.fetch(entry.name) }
        titles = changed.map { |entry| printable(Holdings::TITLES.fetch(entry.name, entry.name)) }
        table("malloc bytes of objects", titles.zip(changed),
              ["more objects", counts.map { |one| number(one.grown_bytes) }])
      end

      def arenas
        entries = difference.arenas.zip(difference.arenas_used).flat_map do |system, used|
          [["#{printable(system.name)}: total", system], ["#{printable(used.name)}: in use", used]]
        end
        changed("arena", entries)
      end

      def mappings = changed("mappings, resident", difference.mappings.map { |entry| [printable(entry.name), entry] })

      def changed(heading, entries)
        changed = entries.reject { |_, entry| entry.grown_bytes.zero? }.sort_by { |_, entry| -entry.grown_bytes.abs }
        shown = changed.first(MOST).take_while { |_, entry| entry.grown_bytes.abs >= LEAST_BYTES }
        return if shown.empty?

        text = table(heading, shown)
        more = changed.size - shown.size
        more.positive? ? "#{text}\nand #{more} more with smaller changes (--json lists all)" : text
      end

      def table(heading, entries, *more)
        cells = entries.map(&:last)
        grid([[heading, entries.map(&:first), true],
              ["before MB", cells.map { |one| mega(one.before_bytes) }, false],
              ["after MB", cells.map { |one| mega(one.after_bytes) }, false],
              ["grew by", cells.map { |one| change(one) }, false], *more])
      end

      def slots
        sizes = difference.slots
        return if sizes.empty?

        columns = { "slot bytes" => "slot_bytes", "live before" => "before_live", "after" => "after_live",
                    "free before" => "before_free", "after " => "after_free" }
        grid(columns.map { |heading, key| [heading, sizes.map { |one| number(one[key]) }, false] })
      end

      def change(entry)
        text = mega(entry.grown_bytes)
        return "0" if entry.grown_bytes.zero?

        entry.grown_bytes.positive? ? "+#{text}" : text
      end
    end
  end
end
