# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "labels"

module Culet
  module Cow
    # What was written to the pages that workers stopped sharing, for a terminal.
    class Written
      # Types that hold less of it than this are shown together.
      SMALL_SHARE = 0.01
      MOST_TYPES = 10
      private_constant :SMALL_SHARE, :MOST_TYPES

      # @param family [Family]
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(family, unicode:)
        @members = family.members.select(&:writes)
        @unicode = unicode
      end

      # @return [Array<String>] none where nothing was found out
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def tables = @members.empty? || sum.bytes.zero? ? [] : [categories, objects, classes].compact

      private

      def sum = @sum ||= @members.map(&:writes).reduce(:+)

      # On average.
      def mega(bytes) = Text::Size.cell(bytes.fdiv(@members.size))

      def about = @members.size == 1 ? "process #{@members.first.pid}" : "#{@members.size} workers on average"

      def categories
        rows = Writes::CATEGORIES.select { |one| sum.touched(one).positive? }.sort_by { |one| -sum.touched(one) }
        Text::Table.render([["written in #{about}", rows.map { |one| Labels::WRITES.fetch(one) }, true], ["on pages of MB", rows.map { |one| mega(sum.touched(one)) }, false],
                     ["alone there MB", rows.map { |one| mega(sum.only(one)) }, false]], unicode: @unicode)
      end

      def objects = table("on these pages lie", sum.holdings.transform_keys { |name| Labels.type(name) })

      def classes = table("of these classes", sum.classes.transform_keys { |name| Text::Lines.printable(name) })

      # @param holdings [Hash{String => Writes::Holding}]
      def table(title, holdings)
        all = holdings.sort_by { |_, one| -one.bytes }
        return if all.empty?

        whole = all.sum { |_, one| one.bytes }
        rows, rest = all.each_with_index.partition { |(_, one), index| index < MOST_TYPES && one.bytes >= SMALL_SHARE * whole }.map { |part| part.map(&:first) }
        rows << ["others", Writes::Holding.new(*rest.map { |_, one| one.to_a }.transpose.map(&:sum))] if rest.any?
        columns = { "old" => :old, "young" => :young, "made since" => :made, "in malloc" => :malloc, "made there" => :malloc_made }
        Text::Table.render([[title, rows.map(&:first), true], *columns.map { |heading, figure| ["#{heading} MB", rows.map { |_, one| mega(one.public_send(figure)) }, false] }], unicode: @unicode)
      end
    end
  end
end
