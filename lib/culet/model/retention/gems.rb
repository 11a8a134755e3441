# frozen_string_literal: true

require_relative "../origin"
require_relative "analysis"

module Culet
  module Retention
    # Memory kept by the holders of each gem. A holder belongs to the gem of the file that defines it; a set whose
    # holders are of several gems belongs to none.
    class Gems
      SEVERAL = "several gems together"
      UNKNOWN = "unknown"
      # Kinds of holders that are Ruby's where no file is known.
      OF_RUBY = %w[symbol_table vm method other].freeze
      private_constant :OF_RUBY

      # bytes: retained; holders: how many of them
      Row = Struct.new(:name, :bytes, :objects, :holders)

      def initialize(analysis)
        @analysis = analysis
      end

      # @return [Array<Row>] the largest first; their bytes add up to the total
      def rows
        found = Hash.new { |rows, name| rows[name] = Row.new(name, 0, 0, 0) }
        @analysis.holders.each { |one| add(found[Gems.of(one)], one.bytes, one.objects) }
        @analysis.sets.each { |set| add(found[of_set(set)], set.bytes, set.objects) }
        [@analysis.other_holders, @analysis.other_sets].each do |rest|
          add(found[UNKNOWN], rest.bytes, rest.objects, rest.count) if rest.count.positive?
        end
        found.values.sort_by { |row| [-row.bytes, row.name] }
      end

      # @return [String] as of Origin.of
      def self.of(holder)
        return Origin.of(holder.file) if holder.file
        return holder.name.split.first.to_s if holder.kind == "native"

        OF_RUBY.include?(holder.kind) ? Origin::RUBY : UNKNOWN
      end

      private

      def add(row, bytes, objects, count = 1)
        row.bytes += bytes
        row.objects += objects
        row.holders += count
      end

      def of_set(set)
        names = set.holders.map { |one| Gems.of(one) }.uniq
        names.size == 1 && set.holders.size == set.size ? names.first : SEVERAL
      end
    end
  end
end
