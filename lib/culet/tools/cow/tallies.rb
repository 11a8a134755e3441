# frozen_string_literal: true

require_relative "../report/ledger"
require_relative "labels"

module Culet
  module Cow
    # One process's figures as the tables that stand beside its map.
    class Tallies
      COLUMNS = ["shared", "its own", "added"].freeze
      private_constant :COLUMNS

      # @param member [Member] that was read
      def initialize(member)
        @census = member.census
        @writes = member.writes
      end

      # @return [Array<Hash>] as Map::PageData takes them
      def to_a
        [categories, shares("By use", @census.levels.transform_keys { |name| Report::Ledger::TITLES.fetch(name) }), *(holdings if @writes), shares("Malloc's blocks by size", Labels.classes(@census.classes)),
         shares("Malloc's arenas", @census.classes.empty? && @census.arenas.size > 1 ? @census.arenas : {}), shares("Ruby's pages by slot", Labels.sizes(@census.slots))].compact
      end

      private

      def shares(title, all)
        rows = all.reject { |_, one| one.resident.zero? }.sort_by { |_, one| -one.resident }
        return if rows.empty?

        { "title" => title, "columns" => COLUMNS, "rows" => rows.map { |name, one| [name.to_s, one.shared, one.unshared, one.fresh + one.own] } }
      end

      def categories
        return unless @writes

        rows = Writes::CATEGORIES.select { |one| @writes.touched(one).positive? }.sort_by { |one| -@writes.touched(one) }
        { "title" => "Written to pages that are its own by now", "columns" => ["on pages of", "alone there"],
          "rows" => rows.map { |one| [Labels::WRITES.fetch(one), @writes.touched(one), @writes.only(one)] } }
      end

      # The page is no place for hundreds of classes.
      MOST_ROWS = 40
      private_constant :MOST_ROWS

      def holdings
        { "What lies on these pages" => @writes.holdings.transform_keys { |name| Labels.type(name) }, "Of these classes" => @writes.classes }.reject { |_, all| all.empty? }.map do |title, all|
          { "title" => title, "columns" => ["old", "young", "made since", "in malloc"],
            "rows" => all.sort_by { |_, one| -one.bytes }.first(MOST_ROWS).map { |name, one| [name, one.old, one.young, one.made, one.malloc + one.malloc_made] } }
        end
      end
    end
  end
end
