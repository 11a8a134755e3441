# frozen_string_literal: true

require_relative "varints"

module Culet
  module Scope
    # A part of a process that a stream tells of in one JSON object. What it says is checked here, once, because all of
    # it comes from a file that anybody may have written.
    #
    # A subclass names its keys with `numbers`, `texts` and `truths`; each becomes a method.
    class Part
      class << self
        # @param bytes [String] what numbers there are, two for each run
        # @return [Array<Array(Integer, Integer)>]
        # @raise [Malformed] when there is half a run
        def runs(bytes)
          numbers = Varints.all(bytes)
          raise Malformed, "there is half a run in it" if numbers.size.odd?

          numbers.each_slice(2).to_a
        end

        # @param names [Array<Symbol>] keys that hold a whole number, not negative
        def numbers(*names) = keys(names, "a whole number") { |value| value.is_a?(Integer) && !value.negative? }

        # @param names [Array<Symbol>] keys that hold text; nil when there is none
        def texts(*names) = keys(names, "text") { |value| value.nil? || value.is_a?(String) }

        # @param names [Array<Symbol>] keys that are true or false
        def truths(*names) = keys(names, "true or false") { |value| [true, false].include?(value) }

        # @return [Hash{String => Array}] key => what it holds, in words, and its check
        def checks = @checks ||= {}

        private

        def keys(names, meaning, &check)
          names.each do |name|
            checks[name.to_s] = [meaning, check]
            define_method(name) { @fields[name.to_s] }
          end
        end
      end

      # @param fields [Hash{String => Object}] the JSON object
      # @raise [Malformed] when a key is missing or holds something else
      def initialize(fields)
        @fields = fields
        self.class.checks.each do |key, (meaning, check)|
          next if check.call(fields[key])

          raise Malformed, "#{self.class.name.split("::").last.downcase} has no #{key} that is #{meaning}"
        end
      end

      # @return [Hash{String => Object}] as it stood in the stream, without its kind
      def to_h = @fields.except("kind")
    end
  end
end
