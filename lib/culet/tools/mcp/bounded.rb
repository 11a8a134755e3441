# frozen_string_literal: true

require "json"

module Culet
  # The answers of `culet mcp`.
  module Mcp
    # A JSON document cut to a size: its longest lists lose their last elements, and `left_out` says how many.
    class Bounded
      MOST_BYTES = 8_000
      # Of one text.
      MOST_CHARACTERS = 400
      private_constant :MOST_CHARACTERS

      # @param document [Hash, Array] as JSON.parse makes it
      def initialize(document)
        @document = shortened(document.is_a?(Hash) ? document : { "list" => document })
        @left_out = Hash.new(0)
      end

      # @return [String] JSON
      def to_s
        while (text = JSON.generate(complete)).bytesize > MOST_BYTES
          name, list = largest(Array) || largest(Hash)
          break unless list

          halve(name, list)
        end
        text
      end

      private

      def complete = @left_out.empty? ? @document : @document.merge("left_out" => @left_out)

      def halve(name, list)
        count = list.size / 2
        list.is_a?(Hash) ? list.keys.last(count).each { |key| list.delete(key) } : list.pop(count)
        @left_out[name] += count
      end

      # @return [Array(String, Array), Array(String, Hash), nil] the name and the list
      def largest(kind)
        lists(@document, nil).select { |_, list| list.is_a?(kind) && list.size > 1 }
                             .max_by { |_, list| JSON.generate(list).bytesize }
      end

      # Lists of a list's elements have one name, so that `left_out` stays short.
      def lists(value, name)
        parts = if value.is_a?(Hash) then value.map { |key, one| [one, [name, key].compact.join(".")] }
                else
                  value.map { |one| [one, name] }
                end
        parts.select { |one, _| one.is_a?(Enumerable) }.flat_map { |one, path| [[path, one], *lists(one, path)] }
      end

      def shortened(value)
        case value
        when Hash then value.transform_values { |one| shortened(one) }
        when Array then value.map { |one| shortened(one) }
        when String then value.size > MOST_CHARACTERS ? "#{value[0, MOST_CHARACTERS]}..." : value
        else value
        end
      end
    end
  end
end
