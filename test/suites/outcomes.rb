# frozen_string_literal: true

module Suites
  # What became of each test in one run of a suite: :passed, :failed or :skipped, by name.
  class Outcomes
    # complaints: what the suite's runner said about itself where it did not come to its end
    attr_reader :complaints

    # @param by_name [Hash{String => Symbol}]
    # @param complaints [Array<String>]
    def initialize(by_name = {}, complaints: [])
      @by_name = by_name.dup.freeze
      @complaints = complaints.dup.freeze
    end

    # @param other [Outcomes] of another part of the suite; where both have a test, a failure counts
    # @return [Outcomes] of both
    def +(other)
      merged = @by_name.merge(other.to_h) { |_, one, two| [one, two].include?(:failed) ? :failed : two }
      Outcomes.new(merged, complaints: complaints + other.complaints)
    end

    # @return [Symbol] :missing where the run has said nothing about it
    def [](name) = @by_name.fetch(name, :missing)

    # @return [Array<String>] in the order of the alphabet
    def names = @by_name.keys.sort

    # @return [Integer] how many
    def count(kind) = @by_name.each_value.count(kind)

    def to_h = @by_name

    # @return [String] e.g. "11018 tests: 10983 passed, 0 failed, 35 skipped"
    def to_s = "#{@by_name.size} tests: #{count(:passed)} passed, #{count(:failed)} failed, #{count(:skipped)} skipped"
  end
end
