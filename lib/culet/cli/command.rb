# frozen_string_literal: true

require "json"
require "optparse"
require "shellwords"
require_relative "../system/atomic_file"
require_relative "../system/executables"
require_relative "../errors"
require_relative "../system/processes"
require_relative "../text/lines"
require_relative "numbers"
require_relative "program"
require_relative "suggestion"

module Culet
  module CLI
    # The base of every verb: --help with examples, --json, --out, --[no-]color, and the arguments before and after
    # `--`.
    #
    # A subclass has the constants BANNER (its usage), EXAMPLES, and WORDS where completion offers fixed ones. It adds
    # its own options in `define(parser)` and does its work in `execute(words, command)`, which returns an exit status.
    class Command
      include Numbers

      WORDS = [].freeze

      # @return [Output] for the report
      attr_reader :out
      # @return [Messages] for progress and messages
      attr_reader :err
      # @return [Hash{Symbol => Object}] the options that were given
      attr_reader :options

      # @param out [IO] for the report
      # @param err [IO] for progress and messages
      def initialize(out:, err:)
        @out = out
        @err = err
        @options = {}
      end

      # @param argv [Array<String>] the arguments after the verb
      # @return [Integer] exit status
      def call(argv)
        own, command = split(argv)
        @help_asked = own.intersect?(%w[-h --help])
        refuse_letters(own)
        words = parser.permute(own)
        return help if options[:help]
        raise UsageError, EMPTY if words.include?("")

        refuse_command if command && !takes_command?
        check_destinations(:out)
        execute(words, command)
      rescue OptionParser::ParseError => e
        raise UsageError, [mistake(e), dashes(argv) || meant(e) || "see `culet #{verb} --help`"].join("; ")
      rescue UsageError, Processes::Search::Absent => e
        hint = dashes(argv) or raise
        raise UsageError, "#{e.message}; #{hint}"
      end

      HELP_COLUMNS = 80
      # Columns of the options in --help; their descriptions stand behind them, or below a longer option.
      SUMMARY_COLUMNS = 24
      EMPTY = "an argument is empty; if it is the output of $(...), that command found nothing"
      private_constant :EMPTY, :HELP_COLUMNS, :SUMMARY_COLUMNS

      # @return [String] name of the verb
      def verb = self.class.name.split("::").last.downcase

      # @return [String] one line for the overview
      def summary = VERBS.fetch(verb).last

      # @return [String] the usage
      def banner = self.class::BANNER

      # @return [Array<String>] for --help
      def examples = self.class::EXAMPLES

      # @return [Array<String>] fixed arguments, for completion
      def known_words = self.class::WORDS

      # @return [OptionParser] the options, for manual and completion; without facts of this machine
      def described
        @help_asked = true
        @anywhere = true
        parser
      end

      private

      # @return [Array] the arguments before `--`, and the command after it (nil without `--`)
      def split(argv)
        at = argv.index("--")
        at ? [argv[0...at], argv[(at + 1)..]] : [argv.dup, nil]
      end

      def parser
        @parser ||= OptionParser.new(nil, SUMMARY_COLUMNS) do |o|
          o.banner = "usage: #{banner}"
          o.separator("")
          define(o)
          option(o, "--json", "print one JSON document")
          option(o, "--out FILE", "write the report to FILE, not to stdout")
          option(o, "--[no-]color", "use colours (default: on a terminal)")
          option(o, "-h", "--help", "print this help")
        end
      end

      # Adds an option, whose value is kept under its long name: as it is given, or as the block makes it.
      def option(parser, *words, &convert)
        name = words.grep(/\A--/).first[/\A--(?:\[no-\]|no-)?([a-z-]+)/, 1].tr("-", "_").to_sym
        parser.on(*words) { |value| options[name] = convert ? convert.call(value) : value }
      end

      def duration(parser, flag, text) = option(parser, flag, text) { |v| Duration.seconds(flag[/\S+/], v) }

      def number(parser, flag, text, **limits) = option(parser, flag, text) { |v| whole(flag[/\S+/], v, **limits) }

      def decimal(parser, flag, text, **limits) = option(parser, flag, text) { |v| positive(flag[/\S+/], v, **limits) }

      # Adds sentences between options.
      def paragraph(parser, text)
        parser.separator(text)
        parser.separator("")
      end

      # OptionParser completes -e to --every; `culet cow ruby -e 1` lacks the `--`.
      def refuse_letters(own)
        letters = switches.flat_map(&:short)
        unknown = own.find { |word| word.match?(/\A-[[:alpha:]]/) && !letters.include?(word[0, 2]) }
        raise OptionParser::InvalidOption, unknown if unknown
      end

      # OptionParser adds suggestions in lines of their own.
      def mistake(error) = error.message.lines.first.chomp

      # @return [String, nil] the option that was probably meant
      def meant(error)
        flag = error.args.first.to_s[/\A--[^=]+/]
        Suggestion.for(flag, long_options) if flag && error.is_a?(OptionParser::InvalidOption)
      end

      def switches = parser.top.list.grep(OptionParser::Switch)

      def long_options
        switches.flat_map(&:long).flat_map { |flag| [flag.sub("[no-]", ""), flag.sub("[no-]", "no-")] }.uniq
      end

      # Whether the verb runs a command.
      def takes_command? = banner.include?("-- COMMAND")

      def refuse_command = raise(UsageError, "`culet #{verb}` does not run a command; #{instead}")

      # @return [String] what to do, where the verb runs no command
      def instead = "write `#{banner}`"

      # @return [String, nil] the corrected command line if the `--` before a command is missing
      def dashes(argv)
        return if !takes_command? || argv.include?("--")

        at = argv.each_index.find { |index| !value?(argv, index) && command?(argv[index]) } or return
        "write the command after `--`: `culet #{Shellwords.join([verb.split.first, *argv[0...at], "--", *argv[at..]])}`"
      end

      # Whether an argument is the value of the option before it.
      def value?(argv, index)
        return false unless index.positive?

        switches.any? { |switch| switch.arg && [*switch.short, *switch.long].include?(argv[index - 1]) }
      end

      def command?(word)
        !word.start_with?("-") && !word.match?(/\A\d*\z/) && !File.file?(word) && Executables.find(word)
      end

      def help
        fit_descriptions
        out.puts(parser.help, "", "Examples:", *examples.map { |line| "  #{line}" })
        EXIT_OK
      end

      def fit_descriptions
        columns = HELP_COLUMNS - parser.summary_width - parser.summary_indent.size - 1
        switches.each { |switch| switch.desc.replace(switch.desc.flat_map { |line| wrapped(line, columns) }) }
        parts = parser.top.list
        parts.replace(parts.flat_map { |part| part.is_a?(String) && part != "" ? wrapped(part, HELP_COLUMNS) : [part] })
      end

      # @return [Array<String>] lines, all with the indentation of the text
      def wrapped(text, columns)
        indent = text[/\A */]
        Text::Lines.wrap(text.lstrip, columns: columns - indent.size).lines(chomp: true).map { |line| indent + line }
      end

      # Whether --help is printed; parts of its text are slow to make.
      def help_asked? = @help_asked

      def color?
        options.fetch(:color) { out.tty? && !options[:out] && ENV["TERM"] != "dumb" && ENV["NO_COLOR"].to_s.empty? }
      end

      # Makes the text of the block fit the terminal.
      #
      # @return [String] the block's value
      def fitted(columns = page_columns) = Text::Lines.within(columns) { Text::Lines.fold(yield.to_s) }

      # @param document [#to_h] for --json
      # @yieldreturn [#to_s] for readers
      # @return [String] the report
      def formatted(document, &) = options[:json] ? JSON.generate(document.to_h) : fitted(&)

      # @return [Integer, nil] columns of the terminal, or COLUMNS; nil: no limit
      def page_columns
        return if options[:out]

        text = ENV["COLUMNS"].to_s.b
        columns = out.tty? ? terminal_columns : (text.to_i if text.match?(/\A\d{1,4}\z/))
        columns if columns&.positive?
      end

      def terminal_columns
        require "io/console"
        columns = out.winsize.last
        columns.positive? ? columns : 80
      end

      # Whether the description is for all machines, not for this one.
      def anywhere? = @anywhere

      # Writes the report to --out or to stdout.
      #
      # @param secret [Boolean] whether it contains text from the memory of a process
      def deliver(text, secret: false)
        text = "#{text}\n" unless text.end_with?("\n")
        return out.write(text) unless options[:out]

        write_file(options[:out], text, secret: secret)
      end

      def write_file(path, text, secret: false)
        AtomicFile.write(path, text, secret: secret)
        err.puts("culet: wrote #{path}")
      end

      # Before a long run, not after it.
      #
      # @param names [Array<Symbol>] options that name files
      def check_destinations(*names) = options.values_at(*names).compact.each { |path| AtomicFile.check(path) }

      # @raise [Error] when a signal came; the report has been written
      def check_interruption(interruption)
        return unless interruption.requested?

        raise Error.new("interrupted by SIG#{interruption.signal}: the report has the results up to then",
                        exit_status: interruption.exit_status)
      end

      def define(parser); end
    end
  end
end
