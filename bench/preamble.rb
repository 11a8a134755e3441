# frozen_string_literal: true

# Required first by every benchmark: this checkout's gems and library, and one command line for all.
require_relative "../bin/gems"
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "json"
require "optparse"
require "culet/errors"
require "culet/system/atomic_file"
require "culet/system/clock"
require_relative "results/result_file"
require_relative "results/table"

# The benchmarks, see bench/README.md.
module Bench
  # The top of the checkout.
  ROOT = File.expand_path("..", __dir__)
  OUT = "write the results to FILE, e.g. docs/benchmarks/NAME.json, which bench/report reads"

  module_function

  # Runs the command line of a benchmark and ends the process: 0 done (or what the block returns, when that is an
  # Integer), 1 failed, 2 wrong usage.
  #
  # @param usage [String] as the first line of --help, e.g. "bench/strings/run [options] FILE"
  # @param purpose [String] a paragraph of --help
  # @param out [Boolean] whether there is --out
  # @param options [Hash{Symbol => Array}] name to default, text and, where the default does not show it, class; or in
  #   place of the class the words that can be given
  # @yieldparam options [Hash] values by name
  # @yieldparam arguments [Array<String>] the others; a block without this parameter takes none
  def command(usage, purpose, out: false, **options, &block)
    options[:out] = [nil, OUT] if out
    values = options.transform_values(&:first)
    arguments = parser(usage, purpose, options, values).parse(ARGV)
    raise OptionParser::NeedlessArgument, arguments.first if block.arity == 1 && arguments.any?

    Culet::AtomicFile.check(values[:out]) if values[:out]
    status = block.call(values, arguments)
    exit(status.is_a?(Integer) ? status : 0)
  rescue OptionParser::ParseError, Culet::UsageError => e
    fail_with(2, usage, e.message)
  rescue Culet::Error => e
    fail_with(1, usage, e.message)
  rescue Interrupt
    fail_with(1, usage, "interrupted")
  end

  # @param all [Array]
  # @param words [Array<String>] that name some of them; none: all
  # @param noun [String] what they are, for the sentence
  # @yieldparam one [Object] of them
  # @yieldreturn [Array<String>] its name, and those of its groups
  # @return [Array] each once, in the order of the words
  # @raise [Culet::UsageError]
  def chosen(all, words, noun)
    return all if words.empty?

    words.flat_map do |word|
      found = all.select { |one| yield(one).include?(word) }
      next found if found.any?

      raise Culet::UsageError, "there is no #{noun} #{word}; see --help"
    end.uniq
  end

  # Prints the results, and writes them to a result file.
  #
  # @param out [String, nil] of --out
  # @param about [Hash] title and the like, as of ResultFile.of
  def publish(rows, out:, **about)
    puts RUBY_DESCRIPTION, Table.new(rows).by_metric
    ResultFile.write(out, rows: rows, **about)
  end

  # @param text [String] what the benchmark does next
  def progress(text) = warn("#{$PROGRAM_NAME[%r{bench/.*}] || $PROGRAM_NAME}: #{text}")

  # Runs contenders in turn, another one first in each round, so that a slow minute of the machine slows all of them.
  #
  # @yieldparam name [String]
  # @return [Hash{String => Array}] name to what the block returned
  def in_turn(names, runs)
    found = names.to_h { |name| [name, []] }
    runs.times do |round|
      names.rotate(round).each do |name|
        progress("#{name}, run #{round + 1} of #{runs}")
        found[name] << yield(name)
      end
    end
    found
  end

  # Waits until the block returns something true.
  #
  # @param seconds [Numeric] at most
  # @return [Object, nil] what it returned; nil: it did not in time
  def await(seconds)
    deadline = Culet::Clock.now + seconds
    until (result = yield)
      return if Culet::Clock.now > deadline

      sleep 0.05
    end
    result
  end

  # Waits until a server answers.
  #
  # @param child [Culet::Benchmark::Child] its process
  # @param seconds [Numeric] at most
  # @yieldreturn [Boolean] whether it answers
  # @raise [Culet::Error] when it ends before, or does not answer in time
  def await_server(child, seconds)
    until yield
      raise Culet::Error, "the server ended before it answered: #{child.diagnostic}" if child.wait(0.1)
      raise Culet::Error, "the server did not answer within #{seconds} seconds" if child.age_seconds > seconds
    end
  end

  def parser(usage, purpose, options, values)
    OptionParser.new("usage: #{usage}\n\n#{purpose}\n") do |parser|
      options.each do |name, (default, text, kind)|
        known = kind if kind.is_a?(Array)
        kind = default.is_a?(String) ? String : Array if known
        kind ||= default.nil? ? String : default.class
        flag = "--#{name.to_s.tr("_", "-")}"
        next parser.on(flag, text) { values[name] = true } if kind == FalseClass

        usual = default == known ? "all" : Array(default).join(",")
        text = [text, *("of #{known.join(", ")}" if known), *("(#{usual})" if default)].join(" ")
        placeholder = text[/\b(?:FILE|DIR)\b/] || PLACEHOLDERS.fetch(kind)
        parser.on("#{flag} #{placeholder}", kind, text) { |value| values[name] = checked(flag, value, known) }
      end
      parser.on("-h", "--help", "this text") do
        puts parser.help
        exit
      end
    end
  end

  PLACEHOLDERS = { Integer => "N", Float => "X", String => "TEXT", Array => "A,B" }.freeze

  def checked(flag, value, known)
    raise OptionParser::InvalidArgument, "#{value}; at least 1" if value.is_a?(Integer) && value < 1 && flag != "--seed"

    unknown = known ? Array(value) - known : []
    return value if unknown.empty?

    raise OptionParser::InvalidArgument, "#{unknown.first} is none of #{known.join(", ")}"
  end

  def fail_with(status, usage, message)
    warn "#{usage[/\S+/]}: #{message}"
    exit status
  end
end
