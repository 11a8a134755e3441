# frozen_string_literal: true

require_relative "../../text/view"
require_relative "holdings"

module Culet
  module Report
    # The memory of the objects of a process, as counted by the process itself (culet/agent).
    class Inside < Text::View
      # How many types of objects, and of C objects, have a line.
      MOST_TYPES = 12
      MOST_DATA = 5
      # Types that hold a smaller share of the memory of all objects are added up in one line.
      SMALL_SHARE = 0.01
      private_constant :MOST_TYPES, :MOST_DATA, :SMALL_SHARE

      # @param level [String] the name of a level
      # @return [Array<Array(String, Integer)>] titles and bytes of the rows below it
      def rows(level)
        holdings = Holdings.of(memory)
        return [] unless holdings && holdings.level == level

        shown, small = holdings.entries.partition { |entry| entry.bytes >= SMALL_SHARE * [holdings.ruby_bytes, 1].max }
        rows = shown.map { |entry| ["  #{printable(entry.title)}", entry.bytes] }
        rows << ["  other Ruby objects", small.sum(&:bytes)] if small.any?
        rows << ["  #{holdings.rest_title}", holdings.rest_bytes]
      end

      # @return [Array<String, nil>] tables and sentences; nil where there is nothing to print
      def sections = [types, extensions, counting, statistics]

      private

      def memory = @subject

      def objects = memory.snapshot.objects

      def types
        return unless objects&.counted?

        shown = objects.types.first(MOST_TYPES)
        grid([["objects", shown.map { |type| printable(Holdings::TITLES.fetch(type.name, type.name)) }, true],
              column("count", shown, &:count), column("slot bytes", shown, &:slot_bytes),
              column("malloc bytes", shown, &:malloc_bytes),
              *([column("elsewhere", shown, &:elsewhere_bytes)] if objects.elsewhere_bytes.positive?)])
      end

      def column(heading, tallies) = [heading, tallies.map { |tally| number(yield(tally)) }, false]

      def extensions
        tallies = objects&.data.to_a
        largest = tallies.reject { |tally| tally.malloc_bytes.zero? || tally.name == "others" }.first(MOST_DATA)
        return if largest.empty?

        list = largest.map do |tally|
          "#{printable(tally.name)} #{size(tally.malloc_bytes)} (#{number(tally.count)})"
        end
        wrap("largest types of C objects: #{list.join(", ")}", indent: 2)
      end

      def counting
        return unless objects
        return note_lines(["the objects were not counted: #{objects.why}"]) unless objects.counted?

        text = format("counted in %.1f ms, while Ruby was paused", 1000 * objects.seconds)
        unless objects.complete
          text << "; incomplete, because the time limit was reached: " \
                  "the rest is part of \"#{Holdings::REST.fetch(true)}\""
        end
        text << "; the size of #{count(unsized, "C object")} is unknown" if unsized.positive?
        wrap(text, indent: 2)
      end

      def unsized = objects.types.find { |type| type.name == "T_DATA" }&.untold.to_i

      def statistics
        name, figures = memory.snapshot.allocator_statistics.to_h.values_at("name", "figures")
        return unless figures.is_a?(Hash)

        numbers = figures.select { |_, value| value.is_a?(Integer) }
        return if numbers.empty?

        list = numbers.map do |key, value|
          title = printable(key.to_s.delete_suffix("_bytes").tr("_", " "))
          "#{title} #{key.end_with?("_bytes") ? size(value) : number(value)}"
        end
        wrap("statistics of #{printable(name)}: #{list.join(", ")}", indent: 2)
      end
    end
  end
end
