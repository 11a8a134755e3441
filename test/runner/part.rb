# frozen_string_literal: true

require "etc"
require_relative "outcome"

module Runner
  # A program that checks something beside the test files, and ends with status 0 where all is well: the linters, and the C
  # tests of a folder.
  class Part
    # What became of a part. It counts no tests of Ruby, but an error where it failed.
    class Outcome < Runner::Outcome
      # Lines of its end that the list of failures has.
      END_LINES = 60

      # @return [String] the end of what was printed, and the fault
      def complaint = "#{text.lines(chomp: true).reject(&:empty?).last(END_LINES).join("\n")}\n\nError: #{fault}"

      private

      def fault_of(_counts, success) = success ? nil : "it ended with an error"
    end

    ROOT = File.expand_path("../..", __dir__)
    # Those with C tests, and about how many seconds they take on two processors, as bin/lint does.
    FOLDERS = { "allocator" => 240, "reader" => 40, "sampler" => 40 }.freeze
    LINT_SECONDS = 120
    # More would take too much memory with the sanitizers.
    MOST_JOBS = 8

    # @param slow [Boolean] whether the slow C tests and checks of style run too
    # @return [Array<Part>] the linters and the C tests
    def self.all(slow: ENV.key?("CULET_TEST_ALL"))
      target = slow ? "test-all" : "test"
      jobs = [Etc.nprocessors, MOST_JOBS].min
      makes = FOLDERS.map do |folder, seconds|
        new("make -C #{folder} #{target}", ["make", "--no-print-directory", "-j#{jobs}", "-C", "#{ROOT}/#{folder}", target], seconds)
      end
      lint = slow ? %w[bin/lint] : %w[bin/lint --quick]
      [*makes, new(lint.join(" "), ["#{ROOT}/#{lint.first}", *lint.drop(1)], LINT_SECONDS)]
    end

    # @return [String] how a person would start it
    attr_reader :name
    # @return [Array<String>] program and arguments
    attr_reader :command
    # @return [Numeric] about how long it takes
    attr_reader :seconds

    def initialize(name, command, seconds)
      @name = name
      @command = command
      @seconds = seconds
    end

    # @return [Boolean] whether nothing else may run meanwhile
    def alone? = false

    def outcome(text, **how) = Outcome.new(text, **how)
  end
end
