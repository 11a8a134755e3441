# frozen_string_literal: true

require_relative "../../text/view"
require_relative "inside"

module Culet
  module Report
    # A report for a terminal.
    class Table < Text::View
      # How many of the mappings without a level of their own are listed.
      OTHERS = 5
      private_constant :OTHERS

      private

      def snapshot = @subject

      def memory = @memory ||= SnapshotLevels.new(snapshot)

      def sections
        [heading, levels, others, slots, inside.sections,
         verdict_lines(SnapshotVerdicts.new(memory).list), note_lines(snapshot.problems)]
      end

      def process = snapshot.process

      # A small process gets one more digit; all figures of one table have the same number of digits.
      def mega(bytes) = super(bytes, digits: process.rss_bytes < 10e6 ? 2 : 1)

      def heading
        title = "#{printable(process.called)} (process #{process.pid}): #{mega(process.rss_bytes)} MB resident"
        figures = { "PSS" => process.pss_bytes, "private and dirty" => process.private_dirty_bytes,
                    "swapped" => process.swap_bytes }
        rest = figures.reject { |name, bytes| name == "swapped" && bytes.zero? }
                      .map { |name, bytes| "#{mega(bytes)} MB #{name}" }
        [bold(title), rest.join(", "), allocator].join("\n")
      end

      def allocator
        name = printable(snapshot.allocator.name)
        malloc = snapshot.malloc
        text = if malloc && snapshot.allocator.blocks?
                 mmapped = count(malloc.mmapped_chunks, "mmapped block") if malloc.mmapped_chunks.positive?
                 ["malloc: #{name}", count(malloc.arenas, "arena"), *mmapped].join(", ")
               else
                 parts = ["malloc: #{name}", snapshot.allocator.why].compact.reject(&:empty?)
                 parts.map { |part| printable(part) }.join("; ")
               end
        wrap(text, indent: 2)
      end

      def inside = @inside ||= Inside.new(memory, unicode: @unicode)

      # The levels; below one of them, if the process reported its objects, what these hold.
      def rows
        shown = memory.levels.reject { |name, bytes| bytes.zero? || (name == "unexplained" && mega(bytes).to_f.zero?) }
        shown.flat_map { |name, bytes| [[Levels::TITLES.fetch(name), bytes], *inside.rows(name)] }
      end

      def levels
        shown = rows
        sums = shown.map { |_, bytes| mega(bytes) }
        shares = shown.map { |_, bytes| percent(bytes, memory.rss_bytes) }
        grid([["level", [*shown.map(&:first), "resident"], true], ["MB", [*sums, mega(memory.rss_bytes)], false],
              ["share", [*shares, memory.rss_bytes.zero? ? "-" : "100.0 %"], false],
              ["", [*shown.map { |_, bytes| memory.rss_bytes.positive? ? bytes.fdiv(memory.rss_bytes) : 0 }, nil],
               :bar]])
      end

      def others
        first, *rest = memory.others.each_slice(OTHERS).to_a
        return unless first

        names = first.map do |name, bytes, count|
          "#{printable(name)}#{" (#{count} mappings)" if count > 1} #{size(bytes)}"
        end
        names << "and more, #{size(rest.flatten(1).sum { |one| one[1] })}" if rest.any?
        wrap("other mappings: #{names.join(", ")}", indent: 2)
      end

      def slots
        sizes = snapshot.ruby&.slots.to_a
        return if sizes.empty?

        columns = { "slot bytes" => "slot_bytes", "pages" => "pages", "live" => "live", "free" => "free" }
        grid(columns.map { |heading, key| [heading, sizes.map { |one| number(one[key].to_i) }, false] })
      end
    end
  end
end
