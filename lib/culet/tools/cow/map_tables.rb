# frozen_string_literal: true

require_relative "../../model/levels"
require_relative "labels"

module Culet
  module Cow
    # One process's figures as the tables beside its map.
    class MapTables
      COLUMNS = %w[shared unshared added].freeze
      # An application has hundreds of classes.
      MOST_ROWS = 40
      private_constant :COLUMNS, :MOST_ROWS

      # @param member [Member] that was read
      def initialize(member)
        @breakdown = member.breakdown
        @writes = member.writes
      end

      # @return [Array<Hash>] as Map::PageData takes them
      def to_a
        by_use = @breakdown.levels.transform_keys { |name| Levels::TITLES.fetch(name) }
        [categories, sharing("By use", by_use), *(holdings if @writes),
         sharing("malloc by block size", Labels.classes(@breakdown.classes)),
         sharing("malloc by arena", @breakdown.classes.empty? && @breakdown.arenas.size > 1 ? @breakdown.arenas : {}),
         sharing("Ruby pages by slot size", Labels.sizes(@breakdown.slots))].compact
      end

      private

      # @param all [Hash{String => SharingBytes}]
      def sharing(title, all)
        rows = all.reject { |_, one| one.resident.zero? }.sort_by { |_, one| -one.resident }
        return if rows.empty?

        figures = rows.map { |name, one| [name.to_s, one.shared, one.unshared, one.fresh + one.own] }
        { "title" => title, "columns" => COLUMNS, "rows" => figures }
      end

      def categories
        return unless @writes

        rows = Writes::CATEGORIES.select { |one| @writes.touched(one).positive? }
                                 .sort_by { |one| -@writes.touched(one) }
        { "title" => "Writes to unshared pages", "columns" => ["pages", "only cause"],
          "rows" => rows.map { |one| [Labels::WRITES.fetch(one), @writes.touched(one), @writes.only(one)] } }
      end

      def holdings
        tables = { "Objects on unshared pages" => @writes.holdings.transform_keys { |name| Labels.type(name) },
                   "By class" => @writes.classes }
        tables.reject { |_, all| all.empty? }.map do |title, all|
          largest = all.sort_by { |_, one| -one.bytes }.first(MOST_ROWS)
          { "title" => title, "columns" => %w[old young new malloc],
            "rows" => largest.map { |name, one| [name, one.old, one.young, one.made, one.malloc + one.malloc_made] } }
        end
      end
    end
  end
end
