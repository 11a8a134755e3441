# frozen_string_literal: true

require_relative "command"
require_relative "command_run"
require_relative "../../../boot/lib/report"
require_relative "../../../boot/lib/report/saved"
require_relative "../../../boot/lib/report/table"

module Culet
  module CLI
    # `culet requires`: runs a command and measures each of its requires.
    class Requires < Command
      include CommandRun

      UNUSED = "--unused"
      # Of each list, unless more is asked for.
      LINES = 15
      private_constant :UNUSED, :LINES

      BANNER = "culet requires [options] -- COMMAND ... | FILE.json | --diff A.json B.json"

      EXAMPLES = ["culet requires -- bin/rails runner 1             by gem and by file",
                  "culet requires --html boot.html -- bin/rails runner 1    with a flame graph",
                  "culet requires --sort failed --top 40 -- ruby app.rb",
                  "culet requires --json --out boot.json -- bin/rails runner 1",
                  "culet requires --tree boot.json",
                  "culet requires --diff before.json after.json     two runs compared",
                  "culet requires --unused -- bundle exec puma      code that never ran, at exit",
                  "culet requires --unused 4242                     the same of a running process"].freeze

      # `culet requires --unused` has options of its own.
      def call(argv)
        return super unless argv.take_while { |word| word != "--" }.include?(UNUSED)

        require_relative "requires_unused"
        RequiresUnused.new(out: out, err: err).call(argv)
      end

      # @return [Integer] exit status
      def execute(words, command)
        check(words, command)
        check_destinations(:html)
        return difference(words) if options[:diff]

        conclude(command ? run(command) : read(words.first))
        @status ? Foreground.exit_status(@status) : EXIT_OK
      end

      private

      def define(parser)
        paragraph(parser, "Records the requires of a Ruby program and of its child processes. Their behaviour " \
                          "does not change.")
        option(parser, "--tree", "print the tree of requires, not the list of files")
        orders = Culet::Boot::Table::ORDERS.keys
        option(parser, "--sort FIGURE", orders, "sort by #{orders.join(", ")} (default: self)")
        number(parser, "--top N", "lines of each list (default: #{LINES})", most: Numbers::MOST_LINES)
        option(parser, "--html FILE", "also write a flame graph as an HTML page")
        option(parser, "--[no-]retained", "track which objects are retained (default: yes)")
        option(parser, UNUSED, "list compiled code that never ran; see `culet requires --unused --help`")
        option(parser, "--diff", "compare two files written with --json")
      end

      def check(words, command)
        raise UsageError, "give a command or files, not both" if command && words.any?
        if command ? command.empty? : words.empty?
          raise UsageError, "no command given; write `culet requires -- COMMAND ...`"
        end
        raise UsageError, "--diff takes two files of --json" if options[:diff] && words.size != 2
        raise UsageError, "one file at a time; --diff takes two" if words.size > 1 && !options[:diff]
      end

      def run(command)
        launch(command) do |path|
          run = Culet::Boot::Run.new(command: command, program: path, follow: options.fetch(:retained, true))
          logs = run.call(**redirections)
          @status = run.status
          Culet::Boot::Document.new(logs, command: command, pid: run.pid, status: run.status,
                                          unrecorded: run.unrecorded).to_h
        end
      end

      def read(path)
        Culet::Boot::Saved.read(path, Culet::Boot::Document::KIND, Culet::Boot::Shapes::DOCUMENT,
                                writer: "culet requires --json")
      end

      def conclude(document)
        draw(document) if options[:html]
        shape = { order: options.fetch(:sort, "self"), lines: options.fetch(:top, LINES), tree: options[:tree] }
        deliver(formatted(document) { Culet::Boot::Table.new(document, **shape, color: color?) })
      end

      def draw(document)
        require_relative "../../../boot/lib/report/flame"
        write_file(options[:html], Culet::Boot::Flame.new(document).to_s)
      end

      def difference(words)
        require_relative "../../../boot/lib/report/difference_table"
        both = Culet::Boot::Difference.new(*words.map { |path| read(path) })
        deliver(formatted(both) do
          Culet::Boot::DifferenceTable.new(both, lines: options.fetch(:top, LINES), color: color?)
        end)
        EXIT_OK
      end
    end
  end
end
