# frozen_string_literal: true

require_relative "difference"
require_relative "table"

module Culet
  module Boot
    # A difference, for a terminal: the largest growth first.
    class DifferenceTable < Table
      COLUMNS = Table::COLUMNS.reject { |heading,| ["self ms", "retained", "mallocs"].include?(heading) }.freeze

      # @param options [Hash] lines:, and as for Text::View
      def initialize(difference, **options) = super(difference.to_h, **options)

      private

      def sections = [heading, total, largest("gem"), largest("path", "file")]

      def heading
        words = %w[before after].map do |side|
          one = @document[side]
          time = milliseconds(one["total_seconds"])
          "#{side}: #{printable(one["command"].join(" "))}, #{count(one["files"], "file")} in #{time} ms"
        end
        words.map { |line| bold(line) }.join("\n")
      end

      def total
        rows = COLUMNS.filter_map do |title, figure, unit|
          [title, @document["total"][figure], unit] if @document["total"][figure]
        end
        columns = %w[before after grown].map do |side|
          cells = rows.map do |_, values, unit|
            side == "grown" ? signed(values[side], unit) : cell(values[side], unit)
          end
          [side, cells, false]
        end
        grid([["all files", rows.map(&:first), true], *columns])
      end

      def largest(key, title = key)
        all = @document[key == "gem" ? "gems" : "files"].sort_by { |one| -weight(one) }
        listed(title, all) { |one| name(one, key) } if all.any?
      end

      # @param value [Numeric, Hash, nil] a figure, or one that has grown
      def cell(value, unit) = value.is_a?(Hash) ? signed(value["grown"], unit) : super

      # Memory is the same in every run, time is not.
      def weight(one) = %w[retained_bytes iseq_bytes malloc_bytes].sum { |figure| (one.dig(figure, "grown") || 0).abs }

      def name(one, key)
        side = { "before" => " (removed)", "after" => " (new)" }[one["only"]]
        "#{printable(one[key])}#{side}"
      end

      def signed(value, unit)
        return "0" if value.zero?

        "#{value.positive? ? "+" : "-"}#{cell(value.abs, unit)}"
      end
    end
  end
end
