# frozen_string_literal: true

require_relative "../../text/lines"

module Culet
  module Retention
    # A chain of references from a holder to an object, as a Ruby programmer says it:
    # `Shop::CACHE -> Hash -> "GET /a/1" -> Page @body -> String`.
    class Path
      # One reference: `edge` leads to an object of the class. bytes: what that object keeps; nil: not known.
      Step = Struct.new(:edge, :class_name, :address, :bytes)

      # Parts of a sentence; more are left out in the middle.
      MOST_PARTS = 14
      # Parts at the beginning of a shortened path.
      FIRST_PARTS = 7
      # Characters of one part.
      MOST_CHARACTERS = 80
      # A key of a Hash that is a name or a text; a class in brackets is a key whose text is not known.
      KEY = /\A\[([":].*)\]\z/m
      private_constant :MOST_PARTS, :FIRST_PARTS, :MOST_CHARACTERS, :KEY

      # @return [Array<Step>] from the holder on
      attr_reader :steps

      # @param steps [Array<Hash{String => Object}>] "edge", "class", "address", "bytes"
      def initialize(steps)
        @steps = steps.map { |step| Step.new(*step.values_at("edge", "class", "address", "bytes")) }
      end

      # @yieldparam step [Step]
      # @return [String, nil] "Page @body": the last reference that has a name and leads to an object of which the block
      #   is true, but for the holder's own; nil: there is none
      def last_member
        found = @steps.each_cons(2).select { |from, to| member?(from, to) && yield(to) }.last
        Text::Lines.printable("#{found.first.class_name} #{found.last.edge}") if found
      end

      # The parts of the sentence. A member (`@body`, `[3]`) stands behind the class that has it, a key alone. What
      # repeats itself, as a linked list does, is one part with a count.
      #
      # @return [Array<String>] none of which has control characters
      def parts = @parts ||= cut(folded(words))

      # @return [String]
      def to_s = parts.join(" -> ")

      private

      def member?(from, to) = !from.class_name.start_with?("(internal") && !to.edge.start_with?("(")

      def words
        found = []
        @steps.each_with_index do |step, index|
          key = step.edge[KEY, 1]
          if index.zero? || key || found.empty? then found << shortened(key || step.edge)
          else
            found[-1] = "#{found.last} #{shortened(step.edge)}".strip
          end
          found << shortened(step.class_name)
        end
        found.reject(&:empty?)
      end

      def folded(list)
        list.chunk_while { |one, other| one == other }
            .map { |same| same.size > 1 ? "#{same.first} (#{same.size} times)" : same.first }
      end

      def cut(list)
        return list if list.size <= MOST_PARTS

        last = MOST_PARTS - FIRST_PARTS - 1
        [*list.first(FIRST_PARTS), "(#{list.size - FIRST_PARTS - last} more)", *list.last(last)]
      end

      def shortened(text)
        text = Text::Lines.printable(text)
        text.size > MOST_CHARACTERS ? "#{text[0, MOST_CHARACTERS - 3]}..." : text
      end
    end
  end
end
