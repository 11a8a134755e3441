# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "holdings"

module Culet
  module Report
    # What a process told of itself, for a terminal.
    class Inside
      # How many types of objects, and of C objects, get a line.
      MOST_TYPES = 12
      MOST_DATA = 5
      private_constant :MOST_TYPES, :MOST_DATA

      # @param ledger [Ledger]
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(ledger, unicode:)
        @ledger = ledger
        @snapshot = ledger.snapshot
        @unicode = unicode
      end

      # @return [Array<Array(String, Integer)>] rows to be shown below `level`: what they are called, their bytes
      def rows(level)
        holdings = Holdings.of(@ledger)
        return [] unless holdings && holdings.level == level

        shown, small = holdings.entries.partition { |entry| entry.bytes >= SMALL_SHARE * [holdings.ruby_bytes, 1].max }
        rows = shown.map { |entry| ["  #{Text::Lines.printable(entry.title)}", entry.bytes] }
        rows << ["  other Ruby objects", small.sum(&:bytes)] if small.any?
        rows << ["  #{holdings.rest_title}", holdings.rest_bytes]
      end

      # Types that hold less of what all hold are shown together.
      SMALL_SHARE = 0.01
      private_constant :SMALL_SHARE

      # @return [String, nil] all that it told
      def to_s
        parts = [types, extensions, counting, statistics].compact
        parts.join("\n\n") unless parts.empty?
      end

      private

      def objects = @snapshot.objects

      def types
        return unless objects&.counted?

        shown = objects.types.first(MOST_TYPES)
        Text::Table.render([["objects", shown.map { |type| Text::Lines.printable(Holdings::TITLES.fetch(type.name, type.name)) }, true],
                     column("count", shown, &:count), column("slot bytes", shown, &:slot_bytes), column("malloc bytes", shown, &:malloc_bytes),
                     *([column("elsewhere", shown, &:elsewhere_bytes)] if objects.elsewhere_bytes.positive?)], unicode: @unicode)
      end

      def column(heading, tallies) = [heading, tallies.map { |tally| Text::Numbers.grouped(yield(tally)) }, false]

      def extensions
        largest = objects&.data.to_a.reject { |tally| tally.malloc_bytes.zero? || tally.name == "others" }.first(MOST_DATA)
        return if largest.empty?

        Text::Lines.wrap("C objects that hold most, by type: #{largest.map { |tally| "#{Text::Lines.printable(tally.name)} #{Text::Size.human(tally.malloc_bytes)} (#{Text::Numbers.grouped(tally.count)})" }.join(", ")}", indent: 2)
      end

      def counting
        return unless objects
        return Text::Lines.wrap("note: its objects are not counted: #{Text::Lines.printable(objects.why)}", indent: 2) unless objects.counted?

        text = format("counted in %.1f ms, in which no Ruby code ran", 1000 * objects.seconds)
        text << "; not all of them, the limit ended it: what is missing is with C code" unless objects.complete
        text << "; #{Text::Numbers.count(silent, "C object")} #{silent == 1 ? "does" : "do"} not tell what #{silent == 1 ? "it holds" : "they hold"}" if silent.positive?
        Text::Lines.wrap(text, indent: 2)
      end

      def silent = objects.types.find { |type| type.name == "T_DATA" }&.untold.to_i

      def statistics
        name, figures = @snapshot.allocator_statistics.to_h.values_at("name", "figures")
        return unless figures.is_a?(Hash)

        told = figures.select { |_, value| value.is_a?(Integer) }
        return if told.empty?

        list = told.map { |key, value| "#{Text::Lines.printable(key.to_s.delete_suffix("_bytes").tr("_", " "))} #{key.end_with?("_bytes") ? Text::Size.human(value) : Text::Numbers.grouped(value)}" }
        Text::Lines.wrap("#{Text::Lines.printable(name)} itself counts: #{list.join(", ")}", indent: 2)
      end
    end
  end
end
