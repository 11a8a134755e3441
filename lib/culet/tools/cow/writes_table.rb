# frozen_string_literal: true

require_relative "../../text/view"
require_relative "labels"

module Culet
  module Cow
    # The writes to unshared pages, for a terminal.
    class WritesTable < Text::View
      # Types below this part of all bytes share one row.
      SMALL_SHARE = 0.01
      MOST_TYPES = 10
      COLUMNS = { "old" => :old, "young" => :young, "new" => :made, "malloc" => :malloc,
                  "new malloc" => :malloc_made }.freeze
      private_constant :SMALL_SHARE, :MOST_TYPES, :COLUMNS

      # @return [Array<String>] empty where no pages were compared
      # @raise [Culet::Error] without the terminal-table gem
      def tables = members.empty? || sum.bytes.zero? ? [] : [categories, objects, classes].compact

      private

      def members = @members ||= @subject.members.select(&:writes)

      def sum = @sum ||= members.map(&:writes).reduce(:+)

      # The average of the workers.
      def mega(bytes) = super(bytes.fdiv(members.size))

      def title = members.size == 1 ? "process #{members.first.pid}" : "#{members.size} workers, average"

      def categories
        rows = Writes::CATEGORIES.select { |one| sum.touched(one).positive? }.sort_by { |one| -sum.touched(one) }
        grid([["writes of #{title}", rows.map { |one| Labels::WRITES.fetch(one) }, true],
              ["pages MB", rows.map { |one| mega(sum.touched(one)) }, false],
              ["only cause MB", rows.map { |one| mega(sum.only(one)) }, false]])
      end

      def objects = table("objects on these pages", sum.holdings.transform_keys { |name| Labels.type(name) })

      def classes = table("by class", sum.classes.transform_keys { |name| printable(name) })

      def table(title, holdings)
        all = holdings.sort_by { |_, one| -one.bytes }
        return if all.empty?

        whole = all.sum { |_, one| one.bytes }
        rows, rest = all.each_with_index
                        .partition { |(_, one), index| index < MOST_TYPES && one.bytes >= SMALL_SHARE * whole }
                        .map { |part| part.map(&:first) }
        rows << ["others", Writes::Holding.new(*rest.map { |_, one| one.to_a }.transpose.map(&:sum))] if rest.any?
        columns = COLUMNS.map do |heading, figure|
          ["#{heading} MB", rows.map { |_, one| mega(one.public_send(figure)) }, false]
        end
        grid([[title, rows.map(&:first), true], *columns])
      end
    end
  end
end
