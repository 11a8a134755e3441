# frozen_string_literal: true

require "culet/allocators"
require "tmpdir"
require_relative "comparison"
require_relative "debian"

module Suites
  # The command lines of this folder: a suite on glibc and on culet, side by side, and what differs.
  module Command
    # Exit statuses: 77 is what test drivers take for "skipped".
    GOOD = 0
    FAILED = 1
    USAGE = 2
    SKIPPED = 77

    module_function

    # @param suite [Class] CRubySuite or PythonSuite
    # @param words [Array<String>] what to restrict it to
    # @param example [String] such a word, for the usage
    # @return [Integer] the exit status
    def run(suite, words, example:)
      return usage(example) if words.any? { |word| word.match?(%r{\A-(?!ext-/)}) }

      Dir.mktmpdir("culet-suite") do |work|
        tests = suite.new(library: Culet::Allocators.culet_library, work: work, only: words)
        comparison = compare(tests)
        puts comparison
        return comparison.good? ? GOOD : FAILED
      end
    rescue Unavailable => e
      warn("culet suite: skipped: #{e.message}.")
      SKIPPED
    rescue Culet::Error => e
      warn("culet suite: #{e.message}")
      FAILED
    end

    def compare(tests)
      plain, preloaded = [false, true].map { |preload| Thread.new { tests.run(preload) } }.map(&:value)
      Comparison.new(plain: plain, preloaded: preloaded, known: tests.known) { |name, preload| tests.again(name, preload) }
    end

    def usage(example)
      warn("usage: #{$PROGRAM_NAME} [TEST ...], e.g. #{example}")
      USAGE
    end
    private_class_method :compare, :usage
  end
end
