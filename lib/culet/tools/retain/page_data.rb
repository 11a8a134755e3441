# frozen_string_literal: true

require_relative "../../model/retention/analysis"
require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "figures"

module Culet
  module Retain
    # The data of the page: the tree of what is retained, as columns. Node 0 is all; below it are holders and sets,
    # below these the objects that keep others.
    class PageData
      include Figures

      # SMALL: all objects of a class that are too small to be nodes.
      ROOT, HOLDER, SET, OBJECT, REST, SMALL = *0..5
      # A child with this share of a node's bytes is on the path to most of its objects.
      MAIN = 0.9
      private_constant :ROOT, :HOLDER, :SET, :OBJECT, :REST, :SMALL, :MAIN

      def initialize(analysis)
        @analysis = analysis
        @strings = Hash.new { |numbers, text| numbers[text] = numbers.size }
        @columns = Hash.new { |columns, name| columns[name] = [] }
        @paths = {}
        @class_names = []
      end

      # @return [Hash]
      def to_h
        @to_h ||= begin
          add(-1, ROOT, "all", "", nil, 0, @analysis.total_bytes, @analysis.objects)
          tops = add_keepers
          add_rest("more holders", @analysis.other_holders)
          add_rest("more sets of holders", @analysis.other_sets)
          add_tree(tops)
          tops.each { |keeper, top| add_small(keeper, top) }
          classes = @analysis.classes.map { |one| [@strings[name(one.name)], one.objects, one.bytes] }
          { "nodes" => @columns, "paths" => @paths, "classes" => classes, "strings" => @strings.keys }
        end
      end

      private

      # The classes of a holder, less the objects that are nodes, stand where most of its bytes are.
      def add_small(keeper, top)
        left = keeper.classes.to_h { |one| [one.name, one.dup] }
        place = place_of_small(top, left)
        room = @columns["bytes"][place] - @columns["own"][place] - children[place].sum { |one| @columns["bytes"][one] }
        left.each_value do |one|
          bytes = [one.bytes, room].min
          next unless bytes.positive? && one.objects.positive?

          room -= bytes
          text = "#{Text::Numbers.grouped(one.objects)} #{name(one.name)}"
          add(place, SMALL, text, one.name, nil, bytes, bytes, one.objects)
        end
      end

      # @param left [Hash{String => Instances}] from which the nodes are subtracted
      # @return [Integer] a node
      def place_of_small(top, left)
        stack = [top]
        while (node = stack.pop)
          stack.concat(children[node])
          one = left[@class_names[node]] if @columns["sort"][node] == OBJECT
          next unless one

          one.bytes -= @columns["own"][node]
          one.objects -= 1
        end
        top = children[top].first while main?(top)
        top
      end

      def main?(node)
        children[node].size == 1 && @columns["bytes"][children[node].first] >= MAIN * @columns["bytes"][node]
      end

      # @return [Hash{Integer => Array<Integer>}] of each node of the tree
      def children
        @children ||= @columns["parent"].each_with_index.group_by(&:first)
                                        .transform_values { |pairs| pairs.map(&:last) }.tap { |all| all.default = [] }
      end

      # @return [Integer] the number of the node
      def add(parent, sort, name, class_name, address, own, bytes, objects)
        @class_names << class_name
        name, class_name = [name, class_name].map { |text| @strings[Text::Lines.printable(text)] }
        { "parent" => parent, "sort" => sort, "name" => name, "class" => class_name, "address" => address, "own" => own,
          "bytes" => bytes, "objects" => objects }.each { |column, value| @columns[column] << value }
        @columns["parent"].size - 1
      end

      # @return [Hash{Holder, HolderSet => Integer}] the node of each
      def add_keepers
        tops = {}.compare_by_identity
        @analysis.holders.each do |one|
          tops[one] = add(0, HOLDER, one.title, one.class_name.to_s, one.address, 0, one.bytes, one.objects)
          @paths[tops[one]] = [one.path.to_s]
        end
        @analysis.sets.each do |set|
          tops[set] = add(0, SET, "#{set.title} together", "", nil, 0, set.bytes, set.objects)
          @paths[tops[set]] = set.paths.map(&:to_s)
        end
        tops
      end

      def add_rest(title, rest)
        return if rest.count.zero?

        add(0, REST, "#{rest.count} #{title}", "", nil, rest.bytes, rest.bytes, rest.objects)
      end

      def add_tree(tops)
        numbers = {}
        @analysis.tree.each do |node|
          parent = numbers[node.parent]
          numbers[node.id] = if node.parent.nil? then tops[@analysis.keeper_of(node)]
                             elsif parent
                               add(parent, OBJECT, node.edge, node.class_name, node.address, node.own_bytes, node.bytes,
                                   node.objects)
                             end
        end
      end
    end
  end
end
