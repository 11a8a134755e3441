# frozen_string_literal: true

require_relative "varints"

module Culet
  module Scope
    # A part of a process that a stream tells of in one JSON object. What it says is checked here, once, because all of
    # it comes from a file that anybody may have written.
    #
    # A subclass names its keys with `numbers`, `texts` and `truths`; each becomes a method.
    class Part
      # Later than any clock says; a Time can be made of it.
      MOST_SECONDS = 1 << 40
      # The largest number of 64 bits.
      MOST = (1 << 64) - 1
      private_constant :MOST_SECONDS, :MOST

      # Runs of pages, kept as one list of numbers: an Array of Arrays would take seven times as much memory.
      class Runs
        include Enumerable

        # @return [Integer] how many pages they have
        attr_reader :pages
        # @return [Integer] the largest value of a page
        attr_reader :most

        # @param bytes [String] two numbers for each run
        # @raise [Malformed] when there is half a run
        def initialize(bytes)
          @numbers = Varints.all(bytes)
          raise Malformed, "there is half a run in it" if @numbers.size.odd?

          @pages = @most = 0
          each do |pages, value|
            @pages += pages
            @most = value if value > @most
          end
        end

        # @yieldparam pages [Integer] how many there are
        # @yieldparam value [Integer] that of each
        def each
          return enum_for(:each) unless block_given?

          at = -2
          yield @numbers[at], @numbers[at + 1] while (at += 2) < @numbers.size
        end
      end

      class << self
        # @param names [Array<Symbol>] keys that hold a whole number, not negative
        def numbers(*names) = keys(names, "a whole number") { |value| number?(value) }

        # @param names [Array<Symbol>] keys that hold the number of another part; nil when there is none
        def references(*names) = keys(names, "a number or null") { |value| value.nil? || number?(value) }

        # @param names [Array<Symbol>] keys that hold text; nil when there is none
        def texts(*names) = keys(names, "text") { |value| value.nil? || value.is_a?(String) }

        # @param names [Array<Symbol>] keys that are true or false
        def truths(*names) = keys(names, "true or false") { |value| [true, false].include?(value) }

        # @param names [Array<Symbol>] keys that hold a number of seconds
        def seconds(*names)
          keys(names, "a number of seconds") { |value| value.is_a?(Numeric) && value.between?(0, MOST_SECONDS) }
        end

        # @param names [Array<Symbol>] keys that hold a list
        # @yieldparam [Object] a value of the list
        # @yieldreturn [Boolean] whether it is as it should be
        def lists(*names, meaning, &each) = keys(names, meaning) { |value| value.is_a?(Array) && value.all?(&each) }

        # @return [Boolean] whether it can be a count, a size or an address
        def number?(value) = value.is_a?(Integer) && value.between?(0, MOST)

        # @return [Hash{String => Array}] key => what it holds, in words, and its check
        def checks = @checks ||= {}

        private

        def keys(names, meaning, &check)
          names.each do |name|
            key = name.to_s.freeze # not made anew in each call, of which a reading has very many
            checks[key] = [meaning, check]
            define_method(name) { @fields[key] }
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
