# frozen_string_literal: true

require_relative "../../text/view"
require_relative "../../model/retention/growth"
require_relative "figures"

module Culet
  module Retain
    # Which holders keep more and more, for a terminal.
    class GrowthTable < Text::View
      include Figures

      TOP = 10
      private_constant :TOP

      # @param classes [Boolean] whether classes are listed that no row has
      # @param top [Integer, nil] lines of each list
      # @param options [Hash] as for Text::View
      def initialize(growth, classes: false, top: nil, **options)
        super(**options)
        @growth = growth
        @classes = classes
        @top = top || TOP
      end

      private

      attr_reader :growth

      def sections = [heading, *body, note_lines(notes)]

      def heading
        analysis = growth.analysis
        now = "#{count(analysis.objects, "object")} retain #{size(analysis.total_bytes)}"
        [bold("#{printable(analysis.name)}: #{VERDICTS.fetch(growth.verdict)}"),
         "#{now}, #{signed(growth.total_growth_bytes)} in #{duration}, by " \
         "#{count(growth.looks.size, "look")}"].join("\n")
      end

      VERDICTS = { "growth" => "something keeps more and more", "none" => "no growth shown",
                   "unknown" => "too few looks to judge growth" }.freeze
      private_constant :VERDICTS

      def duration = "#{Text::Numbers.significant(growth.seconds)} s"

      def body
        return [] if growth.verdict == "unknown"
        return [none, (class_table if @classes)].compact if growth.verdict == "none"

        shown = growth.rows.first(@top)
        rest = growth.rows.drop(@top)
        [*shown.each_with_index.map { |row, at| row(row, at + 1) },
         *("#{count(rest.size, "more row")}: #{minute(rest.sum(&:growth_bytes))}" if rest.any?), class_table].compact
      end

      def none
        wrap("No holder kept more at each look. A leak of less than " \
             "#{size(growth.per_minute(growth.least_bytes))} per minute does not show in #{duration}; a longer time " \
             "(--for) finds slower ones.")
      end

      def minute(bytes) = "#{signed(growth.per_minute(bytes))} per minute"

      def row(row, rank)
        keeper = row.keeper
        alike = ", #{number(row.count)} of them" if row.count > 1
        ["#{rank}. #{bold(minute(row.growth_bytes))}, now #{size(row.bytes.last)}: " \
         "#{bold(printable(title(keeper)))}#{alike}", *below(grown(row), *keeper.paths, growth.origin(row))].join("\n")
      end

      def title(keeper) = keeper.is_a?(Retention::HolderSet) ? "#{keeper.title} together" : keeper.title

      def grown(row)
        texts = row.classes.first(4).map do |one|
          "#{signed_number(growth.per_minute(one.objects))} #{name(one.name)} #{signed(growth.per_minute(one.bytes))}"
        end
        "per minute: #{texts.join("; ")}" if texts.any?
      end

      def signed_number(value) = "#{"+" if value.round.positive?}#{number(value)}"

      def class_table
        shown = growth.classes.first(@top)
        return if shown.empty?

        grid([["instances that grow", shown.map { |one| name(one.name) }, true],
              ["now", shown.map { |one| number(one.objects.last) }, false],
              ["per minute", shown.map { |one| signed_number(growth.per_minute(one.growth_objects)) }, false],
              ["bytes per minute", shown.map { |one| signed(growth.per_minute(one.growth_bytes)) }, false]])
      end

      def notes
        rule = "Growth is what rises from look to look, also in the last ones. A cache that is not full yet rises, " \
               "too; a longer time tells it from a leak."
        [*(rule if growth.verdict == "growth"), pause]
      end

      def pause
        longest = growth.looks.map { |look| look.analysis.fork_seconds }.max
        "The process stood still for #{Text::Numbers.significant(1000 * longest)} ms per look at most, while it was " \
          "forked."
      end
    end
  end
end
