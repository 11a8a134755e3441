# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "ledger"
require_relative "inside"
require_relative "verdicts"

module Culet
  module Report
    # A report for a terminal.
    class Table

      # How many of the mappings without a level of their own are named.
      OTHERS = 5
      private_constant :OTHERS

      # @param snapshot [Scope::Snapshot]
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(snapshot, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @snapshot = snapshot
        @ledger = Ledger.new(snapshot)
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s
        text = "#{[heading, levels, others, slots, inside.to_s, verdicts, problems].compact.join("\n\n")}\n"
        @unicode ? text : text.tr("–…", "-.")
      end

      private

      attr_reader :snapshot, :ledger

      def process = snapshot.process

      # Small processes get a digit more; all figures of one table have the same.
      def mega(bytes) = Text::Size.cell(bytes, digits: process.rss_bytes < 10e6 ? 2 : 1)

      def heading
        title = "#{Text::Lines.printable(process.called)} (process #{process.pid}): #{mega(process.rss_bytes)} MB resident"
        figures = { "shared out (PSS)" => process.pss_bytes, "its own and written" => process.private_dirty_bytes, "swapped" => process.swap_bytes }
        rest = figures.reject { |name, bytes| name == "swapped" && bytes.zero? }.map { |name, bytes| "#{mega(bytes)} MB #{name}" }
        [bold(title), rest.join(", "), allocator].join("\n")
      end

      def allocator
        name = Text::Lines.printable(snapshot.allocator.name)
        malloc = snapshot.malloc
        text = if malloc && snapshot.allocator.blocks?
                 "malloc: #{name}, #{Text::Numbers.count(malloc.arenas, "arena")}#{large_blocks}"
               else ["malloc: #{name}", snapshot.allocator.why].compact.reject(&:empty?).map { |part| Text::Lines.printable(part) }.join("; ")
               end
        Text::Lines.wrap(text, indent: 2)
      end

      def large_blocks
        count = snapshot.malloc.mmapped_chunks
        count.zero? ? "" : ", #{Text::Numbers.count(count, "large block")} beside #{snapshot.malloc.arenas == 1 ? "it" : "them"}"
      end

      def inside = @inside ||= Inside.new(ledger, unicode: @unicode)

      # A level, and below it, where the process told so, who holds it.
      def rows
        shown = ledger.levels.reject { |name, bytes| bytes.zero? || (name == "unexplained" && mega(bytes).to_f.zero?) }
        shown.flat_map { |name, bytes| [[Ledger::TITLES.fetch(name), bytes], *inside.rows(name)] }
      end

      def percent(bytes) = "#{Text::Size.cell(ledger.rss_bytes.zero? ? 0 : 100 * bytes.fdiv(ledger.rss_bytes), unit: 1)} %"

      def levels
        shown = rows
        names = shown.map(&:first)
        sums = shown.map { |_, bytes| mega(bytes) }
        shares = shown.map { |_, bytes| percent(bytes) }
        Text::Table.render([["level", [*names, "resident"], true], ["MB", [*sums, mega(ledger.rss_bytes)], false],
                     ["share", [*shares, ledger.rss_bytes.zero? ? "-" : "100.0 %"], false],
                     ["", [*shown.map { |_, bytes| ledger.rss_bytes.positive? ? bytes.fdiv(ledger.rss_bytes) : 0 }, nil], :bar]], unicode: @unicode)
      end

      def others
        first, *rest = ledger.others.each_slice(OTHERS).to_a
        return unless first

        names = first.map { |name, bytes, count| "#{Text::Lines.printable(name)}#{" (#{count} mappings)" if count > 1} #{Text::Size.human(bytes)}" }
        names << "and more, #{Text::Size.human(rest.flatten(1).sum { |one| one[1] })}" if rest.any?
        Text::Lines.wrap("other mappings: #{names.join(", ")}", indent: 2)
      end

      def slots
        sizes = snapshot.ruby&.slots.to_a
        return if sizes.empty?

        columns = { "slot bytes" => "slot_bytes", "pages" => "pages", "live" => "live", "free" => "free" }
        Text::Table.render(columns.map { |heading, key| [heading, sizes.map { |one| Text::Numbers.grouped(one[key].to_i) }, false] }, unicode: @unicode)
      end

      def verdicts = Text::Lines.verdicts(Verdicts.new(ledger).list) { |topic| bold(topic) }

      def problems = Text::Lines.notes(snapshot.problems)

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
    end
  end
end
