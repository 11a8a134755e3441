# frozen_string_literal: true

require "json"
require "optparse"
require_relative "measurement"
require_relative "table"

module TrimPuma
  # Reads the words of the command and says what came of it.
  class CommandLine
    WORKLOADS = %w[rack rails cluster majors].freeze
    NUMBERS = { rounds: 12, boots: 8, seconds: 2, connections: 8 }.freeze
    private_constant :WORKLOADS, :NUMBERS

    # @param words [Array<String>]
    def initialize(words, out: $stdout, err: $stderr)
      @words = words
      @out = out
      @err = err
      @options = NUMBERS.merge(workloads: WORKLOADS - %w[majors], allocator: "glibc", json: nil)
    end

    # @return [Integer] the exit status
    def run
      parse
      results = @options[:workloads].map { |workload| measure(workload) }
      File.write(@options[:json], JSON.pretty_generate(results)) if @options[:json]
      0
    rescue OptionParser::ParseError, Culet::UsageError => e
      @err.puts("trim-puma: #{e.message}")
      2
    rescue Culet::Error, Culet::Compare::Exclusion, SystemCallError => e
      @err.puts("trim-puma: #{e.message}")
      1
    end

    private

    def parse
      OptionParser.new do |parser|
        parser.banner = "usage: bench/trim-puma [options]"
        parser.on("--workloads A,B", Array, "of #{WORKLOADS.join(", ")}") { |names| @options[:workloads] = names }
        parser.on("--allocator NAME", "glibc by default") { |name| @options[:allocator] = name }
        parser.on("--json FILE", "every stretch") { |file| @options[:json] = file }
        NUMBERS.each { |name, default| parser.on("--#{name} N", Integer, "#{default} by default") { |number| @options[name] = number } }
      end.parse!(@words)
      check
    end

    def check
      raise OptionParser::InvalidArgument, @words.first unless @words.empty?

      unknown = @options[:workloads] - WORKLOADS
      raise OptionParser::InvalidArgument, "#{unknown.first} is none of #{WORKLOADS.join(", ")}" if unknown.any?
      raise OptionParser::InvalidArgument, "numbers are at least 1" unless @options.values_at(*NUMBERS.keys).all?(&:positive?)
    end

    def measure(workload)
      choice = Culet::Allocators.parse(@options[:allocator])
      result = Measurement.new(workload: workload, choice: choice, log: @err, **@options.slice(*NUMBERS.keys)).call
      @out.puts(Table.new(result), "")
      result
    end
  end
end
