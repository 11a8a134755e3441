# frozen_string_literal: true

require "rbconfig"
require_relative "outcome"

module Runner
  # A file of tests: how long it takes, and whether it can be run beside others.
  class TestFile
    # A comment at a line's start, which also tells why, keeps a file from running beside others.
    ALONE = /^# Alone: \S/
    # About how many seconds files took on two processors: a line is a path below test/ and a number. What is not listed
    # counts as a short one.
    SECONDS = File.expand_path("seconds.txt", __dir__)
    SHORT = 5.0
    TESTS = File.expand_path("..", __dir__)
    ROOT = File.expand_path("..", TESTS)
    COMMAND = [RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-I#{TESTS}", "-r#{ROOT}/bin/gems.rb", "#{TESTS}/run_all.rb", "/"].freeze

    # @return [Hash{String => Float}] path below test/ to seconds
    def self.recorded
      @recorded ||= File.readlines(SECONDS, chomp: true).to_h do |line|
        path, seconds = line.split
        [path, Float(seconds)]
      end
    end

    # @return [String] absolute path
    attr_reader :path
    # @return [Float] about how long it takes
    attr_reader :seconds

    # @param path [String] absolute path
    def initialize(path)
      @path = path
      @alone = File.read(path).match?(ALONE)
      @seconds = self.class.recorded.fetch(name.delete_prefix("test/"), SHORT)
    end

    # @return [Boolean] whether nothing else may run meanwhile
    def alone? = @alone

    # @return [String] how a person would name it
    def name = path.delete_prefix("#{ROOT}/")

    # @return [Array<String>] program and arguments that run its tests
    def command = [*COMMAND, path]

    def outcome(text, **how) = Outcome.new(text, **how)
  end
end
