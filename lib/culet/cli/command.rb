# frozen_string_literal: true

require "optparse"
require_relative "../errors"

module Culet
  module CLI
    # What every verb shares: --help with examples, --json, --out, --[no-]color,
    # and the split of the words before and after `--`.
    #
    # A subclass gives `banner`, `examples`, adds its own options in
    # `define(parser)` and does its work in `execute(words, command)`, which
    # returns an exit status.
    class Command
      attr_reader :out, :err, :options

      # @param out [IO] the report's destination
      # @param err [IO] chatter and progress
      def initialize(out:, err:)
        @out = out
        @err = err
        @options = {}
      end

      # @param argv [Array<String>] the words after the verb
      # @return [Integer] exit status
      def call(argv)
        own, command = split(argv)
        @help_asked = own.intersect?(%w[-h --help])
        words = parser.permute(own)
        return help if options[:help]

        execute(words, command)
      rescue OptionParser::ParseError => e
        raise UsageError, "#{e.message}; see `culet #{verb} --help`"
      end

      def verb = self.class.name.split("::").last.downcase

      private

      # The words before `--` are ours; those behind it are the user's command
      # (nil when there is no `--`).
      def split(argv)
        at = argv.index("--")
        at ? [argv[0...at], argv[(at + 1)..]] : [argv.dup, nil]
      end

      def parser
        @parser ||= OptionParser.new do |o|
          o.banner = "usage: #{banner}"
          o.separator("")
          define(o)
          o.on("--json", "one JSON document on stdout") { options[:json] = true }
          o.on("--out FILE", "write the report to FILE instead of stdout") { |v| options[:out] = v }
          o.on("--[no-]color", "colour, or none (default: on a terminal)") { |v| options[:color] = v }
          o.on("-h", "--help", "this text") { options[:help] = true }
        end
      end

      def help
        out.puts(parser.help, "", "Examples:", *examples.map { |line| "  #{line}" })
        EXIT_OK
      end

      # Whether the text of --help will be shown: parts of it that are dear to make are made only then.
      def help_asked? = @help_asked

      def color?
        options.fetch(:color) { out.tty? && !ENV.key?("NO_COLOR") }
      end

      # Writes the report to --out (beside it first, then renamed) or to stdout.
      #
      # @param secret [Boolean] whether it has text from a process's memory
      def deliver(text, secret: false)
        text = "#{text}\n" unless text.end_with?("\n")
        return out.write(text) unless options[:out]

        AtomicFile.write(options[:out], text, secret: secret)
        err.puts("culet: wrote #{options[:out]}")
      end

      def define(parser); end
    end
  end
end

require_relative "../atomic_file"
