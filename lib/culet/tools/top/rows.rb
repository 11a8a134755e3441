# frozen_string_literal: true

require_relative "columns"

module Culet
  module Top
    # The processes of a moment in the order of the table: filtered, sorted, and as a tree or a list.
    class Rows
      # One process; `branches` is the drawing before its title in a tree: for each level whether it is the last child.
      Row = Struct.new(:process, :branches, keyword_init: true)

      # @param processes [Array<Hash>] of a moment
      def initialize(processes, state)
        @processes = processes
        @state = state
      end

      # @return [Array<Row>]
      def list
        shown = sorted(@processes.select { |process| matches?(process) })
        @state.tree? ? tree(shown) : shown.map { |process| Row.new(process: process, branches: []) }
      end

      private

      def matches?(process)
        text = @state.filter.downcase
        text.empty? || process["pid"].to_s.include?(text) || title(process).downcase.include?(text)
      end

      # Unknown values are last in either order; equal ones are in the order of their numbers.
      def sorted(processes)
        column = Columns.find(@state.sort)
        known, unknown = processes.partition { |process| !value(process, column).nil? }
        known = known.sort do |one, other|
          order = value(one, column) <=> value(other, column)
          order = -order if @state.descending?
          order.zero? ? one["pid"] <=> other["pid"] : order
        end
        known + unknown
      end

      def title(process) = process["title"].to_s.scrub

      def value(process, column) = column ? column.value(process) : title(process)

      # A process whose parent is not shown stands at the top.
      def tree(shown)
        numbers = shown.to_h { |process| [process["pid"], true] }
        @children = shown.group_by { |process| process["parent_pid"] if numbers[process["parent_pid"]] }
        rows = @children.fetch(nil, []).flat_map { |process| branch(process, []) }
        # Parents are read one after the other: numbers that were used again can form a ring.
        rest = shown - rows.map(&:process)
        rows + rest.map { |process| Row.new(process: process, branches: []) }
      end

      def branch(process, branches)
        children = @children.fetch(process["pid"], [])
        own = Row.new(process: process, branches: branches)
        [own, *children.each_with_index.flat_map { |child, at| branch(child, [*branches, at == children.size - 1]) }]
      end
    end
  end
end
