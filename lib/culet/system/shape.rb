# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Checks the shape of a parsed JSON document that another process or a file supplied.
  #
  # A specification is one of:
  # - a Leaf: COUNT, INTEGER, SECONDS, NUMBER, TEXT, BOOLEAN, ANY, or `Shape.one_of("a", "b")`
  # - any other String, number, true, false or nil: exactly this value
  # - `[spec]`: an Array of any length, all of whose elements match
  # - `Shape.tuple(spec, ...)`: an Array of exactly these elements
  # - `{ "key" => spec }`: a Hash with these keys; others are ignored. `Shape.optional(spec)`: the key may be missing
  # - `Shape.map(key_spec, value_spec)`: a Hash with any number of keys
  # - `Shape.nullable(spec)`, `Shape.either(spec, ...)`
  #
  # @example
  #   PIECE = { "line" => Shape::COUNT, "label" => Shape::TEXT }
  #   Shape.check(document, { "kind" => "report", "pieces" => [PIECE] }, name: "report.json")
  #   # => Culet::Error: report.json is damaged: pieces[3].line is not a whole number from 0 on
  #
  # @api private
  module Shape
    # description: completes "... is not"; test: called with the value, returns whether it matches.
    Leaf = Struct.new(:description, :test)
    Optional = Struct.new(:spec)
    Tuple = Struct.new(:specs)
    Map = Struct.new(:keys, :values)
    Either = Struct.new(:specs)
    # The first difference. path: where it is, added from its end, since most documents have none; text: completes it.
    #
    # @private
    Fault = Struct.new(:path, :text) do
      def within(step) = tap { path.prepend(step) }

      def to_s = "#{path.empty? ? "the whole" : path.delete_prefix(".")} #{text}"
    end
    private_constant :Leaf, :Optional, :Tuple, :Map, :Either, :Fault

    # Sums of several of these figures still fit into a machine word.
    LARGEST = 1 << 56
    LONGEST_KEY = 40
    private_constant :LARGEST, :LONGEST_KEY

    # A count, a number of bytes, a line, a process number.
    COUNT = Leaf.new("a whole number from 0 on",
                     ->(value) { value.is_a?(Integer) && value.between?(0, LARGEST) }).freeze
    # A difference of counts.
    INTEGER = Leaf.new("a whole number", ->(value) { value.is_a?(Integer) && value.between?(-LARGEST, LARGEST) }).freeze
    # A duration. Comparisons, because `between?` raises ArgumentError for NaN.
    SECONDS = Leaf.new("a time", ->(value) { value.is_a?(Numeric) && value >= 0 && value <= LARGEST }).freeze
    NUMBER = Leaf.new("a number", ->(value) { value.is_a?(Numeric) && value >= -LARGEST && value <= LARGEST }).freeze
    # Paths with a zero byte raise ArgumentError in File, invalid encodings in Regexp.
    TEXT = Leaf.new("text", ->(value) { value.is_a?(String) && value.valid_encoding? && !value.include?("\0") }).freeze
    BOOLEAN = Leaf.new("true or false", ->(value) { [true, false].include?(value) }).freeze
    ANY = Leaf.new("anything", ->(_) { true }).freeze

    class << self
      # @param values [Array<Object>] literals
      # @return [Leaf] matches one of the values
      def one_of(*values)
        Leaf.new("one of #{values.map(&:inspect).join(", ")}", ->(value) { values.include?(value) }).freeze
      end

      # @return a specification of a Hash's value whose key may be missing
      def optional(spec) = Optional.new(spec).freeze

      # @return a specification of an Array with one element for each argument
      def tuple(*specs) = Tuple.new(specs.freeze).freeze

      # @return a specification of a Hash with any number of keys
      def map(keys, values) = Map.new(keys, values).freeze

      # @return a specification that one of the arguments must match
      def either(*specs) = Either.new(specs.freeze).freeze

      # @return a specification that nil matches too
      def nullable(spec) = either(nil, spec)

      # @param value [Object] as JSON.parse returned it
      # @param spec [Object] a specification
      # @param name [String] the origin of the value, for the error's sentence
      # @return [Object] the value
      # @raise [Culet::Error] when the shape differs; the message names the path of the first difference
      def check(value, spec, name:)
        fault = fault(value, spec)
        raise Error, "#{name} is damaged: #{fault}" if fault

        value
      end

      # @return [Boolean] whether the value has the shape
      def match?(value, spec) = fault(value, spec).nil?

      private

      # @return [Fault, nil]
      def fault(value, spec)
        case spec
        when Leaf then differs(spec.description) unless spec.test.call(value)
        when Hash then fault_of_hash(value, spec)
        when Array then fault_of_list(value) { spec.first }
        when Tuple then fault_of_tuple(value, spec.specs)
        when Map then fault_of_map(value, spec)
        when Either then fault_of_either(value, spec.specs)
        else differs(spec.inspect) unless spec.eql?(value)
        end
      end

      def differs(description) = Fault.new(+"", "is not #{description}")

      def fault_of_hash(value, spec)
        return differs("an object") unless value.is_a?(Hash)

        spec.each do |key, inner|
          optional = inner.is_a?(Optional)
          found = if value.key?(key) then fault(value[key], optional ? inner.spec : inner)
                  elsif !optional then Fault.new(+"", "is missing")
                  end
          return found.within(".#{key}") if found
        end
        nil
      end

      def fault_of_list(value)
        return differs("a list") unless value.is_a?(Array)

        value.each_with_index do |one, index|
          found = fault(one, yield(index)) and return found.within("[#{index}]")
        end
        nil
      end

      def fault_of_tuple(value, specs)
        return differs("a list of #{specs.size}") unless value.is_a?(Array) && value.size == specs.size

        fault_of_list(value) { |index| specs[index] }
      end

      def fault_of_map(value, spec)
        return differs("an object") unless value.is_a?(Hash)

        value.each do |key, one|
          found = fault(key, spec.keys) || fault(one, spec.values) or next
          return found.within("[#{key.inspect[0, LONGEST_KEY]}]")
        end
        nil
      end

      # Of a nullable the fault of the rest; else of the last alternative.
      def fault_of_either(value, specs)
        specs.map { |spec| fault(value, spec) || (return nil) }.last
      end
    end
  end
end
