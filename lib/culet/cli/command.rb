# frozen_string_literal: true

require "optparse"
require "shellwords"
require_relative "../system/atomic_file"
require_relative "../errors"
require_relative "../system/foreground"
require_relative "../system/processes"
require_relative "../text/lines"
require_relative "numbers"
require_relative "program"
require_relative "suggestion"

module Culet
  module CLI
    # What every verb shares: --help with examples, --json, --out, --[no-]color,
    # and the split of the words before and after `--`.
    #
    # A subclass gives `banner`, `examples`, adds its own options in
    # `define(parser)` and does its work in `execute(words, command)`, which
    # returns an exit status.
    class Command
      include Numbers

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
        refuse_letters(own)
        words = parser.permute(own)
        return help if options[:help]
        raise UsageError, EMPTY if words.include?("")

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

      def verb = self.class.name.split("::").last.downcase

      # @return [String] one line on what it does
      def summary = VERBS.fetch(verb).last

      # @return [Array<String>] words that it takes beside options and what only the user knows
      def known_words = []

      # The options by themselves, for the manual and for completion.
      #
      # @return [OptionParser] with all that --help tells, but for what is so on this machine alone
      def described
        @help_asked = true
        @anywhere = true
        parser
      end

      private

      # The words before `--` are ours; those behind it are the user's command
      # (nil when there is no `--`).
      def split(argv)
        at = argv.index("--")
        at ? [argv[0...at], argv[(at + 1)..]] : [argv.dup, nil]
      end

      def parser
        @parser ||= OptionParser.new(nil, SUMMARY_COLUMNS) do |o|
          o.banner = "usage: #{banner}"
          o.separator("")
          define(o)
          o.on("--json", "print one JSON document") { options[:json] = true }
          o.on("--out FILE", "write the report to FILE, not to stdout") { |v| options[:out] = v }
          o.on("--[no-]color", "use colours (default: on a terminal)") { |v| options[:color] = v }
          o.on("-h", "--help", "print this help") { options[:help] = true }
        end
      end

      # OptionParser takes a letter for the beginning of a long option. `culet cow ruby -e 1` lacks its `--`; it does not
      # ask for --every.
      def refuse_letters(own)
        letters = switches.flat_map(&:short)
        unknown = own.find { |word| word.match?(/\A-[[:alpha:]]/) && !letters.include?(word[0, 2]) }
        raise OptionParser::InvalidOption, unknown if unknown
      end

      # OptionParser adds what it would have meant in lines of their own.
      def mistake(error) = error.message.lines.first.chomp

      # @return [String, nil] the option that was probably meant
      def meant(error)
        flag = error.args.first.to_s[/\A--[^=]+/]
        Suggestion.for(flag, long_options) if flag && error.is_a?(OptionParser::InvalidOption)
      end

      def switches = parser.top.list.grep(OptionParser::Switch)

      def long_options = switches.flat_map(&:long).flat_map { |flag| [flag.sub("[no-]", ""), flag.sub("[no-]", "no-")] }.uniq

      # Whether the verb takes a command of the user's.
      def takes_command? = banner.include?("-- COMMAND")

      # A command that was written without the `--` before it.
      #
      # @return [String, nil] what to write
      def dashes(argv)
        return if !takes_command? || argv.include?("--")

        at = argv.each_index.find { |index| !value?(argv, index) && command?(argv[index]) } or return
        "write the command after `--`: `culet #{Shellwords.join([verb.split.first, *argv[0...at], "--", *argv[at..]])}`"
      end

      # Whether a word is what the option before it takes.
      def value?(argv, index)
        index.positive? && switches.any? { |switch| switch.arg && [*switch.short, *switch.long].include?(argv[index - 1]) }
      end

      def command?(word) = !word.start_with?("-") && !word.match?(/\A\d*\z/) && !File.file?(word) && Program.on_path?(word)

      def help
        fit_descriptions
        out.puts(parser.help, "", "Examples:", *examples.map { |line| "  #{line}" })
        EXIT_OK
      end

      def fit_descriptions
        columns = HELP_COLUMNS - parser.summary_width - parser.summary_indent.size - 1
        switches.each { |switch| switch.desc.replace(switch.desc.flat_map { |line| wrapped(line, columns) }) }
        parser.top.list.replace(parser.top.list.flat_map { |part| part.is_a?(String) && part != "" ? wrapped(part, HELP_COLUMNS) : [part] })
      end

      # @return [Array<String>] lines, all with the indentation of the text
      def wrapped(text, columns)
        indent = text[/\A */]
        Text::Lines.wrap(text.lstrip, columns: columns - indent.size).lines(chomp: true).map { |line| indent + line }
      end

      # Whether the text of --help will be shown: parts of it that are dear to make are made only then.
      def help_asked? = @help_asked

      def color?
        options.fetch(:color) { out.tty? && !options[:out] && ENV["TERM"] != "dumb" && ENV["NO_COLOR"].to_s.empty? }
      end

      # What is made in the block is made to fit where it will be read.
      #
      # @return [String] the block's value
      def fitted = Text::Lines.within(page_columns) { Text::Lines.fold(yield) }

      # @return [Integer, nil] columns of the terminal that the report goes to, or what COLUMNS says; nil: no bound
      def page_columns
        return if options[:out]

        text = ENV["COLUMNS"].to_s
        columns = out.tty? ? terminal_columns : (text.to_i if text.match?(/\A\d{1,4}\z/))
        columns if columns&.positive?
      end

      def terminal_columns
        require "io/console"
        columns = out.winsize.last
        columns.positive? ? columns : 80
      end

      # Whether it is described for any machine, and not for this one.
      def anywhere? = @anywhere

      # Writes the report to --out (beside it first, then renamed) or to stdout.
      #
      # @param secret [Boolean] whether it has text from a process's memory
      def deliver(text, secret: false)
        text = "#{text}\n" unless text.end_with?("\n")
        return out.write(text) unless options[:out]

        AtomicFile.write(options[:out], text, secret: secret)
        err.puts("culet: wrote #{options[:out]}")
      end

      # What the verb exits with after a command of the user's.
      #
      # @param status [Process::Status]
      # @return [Integer] the command's own, as a shell has it
      def status_of(status) = Foreground.exit_status(status)

      # @param status [Process::Status]
      # @return [String] how the user's command ended, as the rest of a sentence
      def ending(status) = status.signaled? ? "was ended by SIG#{::Signal.signame(status.termsig)}" : "ended with status #{status.exitstatus}"

      # @param interruption [Compare::Interruption]
      # @raise [Error] when a signal came: what was complete by then has been reported
      def check_interruption(interruption)
        return unless interruption.requested?

        raise Error.new("interrupted by SIG#{interruption.signal}: the report has the results up to then", exit_status: interruption.exit_status)
      end

      def define(parser); end
    end
  end
end
