# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "program"
require_relative "../../../boot/lib/report"
require_relative "../../../boot/lib/report/saved"
require_relative "../../../boot/lib/report/table"

module Culet
  module CLI
    # `culet requires`: runs a command and measures each of its requires.
    class Requires < Command
      UNUSED = "--unused"
      # Of each list, unless more is asked for.
      LINES = 15
      private_constant :UNUSED, :LINES

      # @return [String] the usage of the verb
      def banner = "culet requires [options] -- COMMAND ... | FILE.json | --diff A.json B.json"

      # `culet requires --unused` has options of its own.
      def call(argv)
        return super unless argv.take_while { |word| word != "--" }.include?(UNUSED)

        require_relative "requires_unused"
        RequiresUnused.new(out: out, err: err).call(argv)
      end

      # @return [Array<String>] examples for --help
      def examples
        ["culet requires -- bin/rails runner 1             by gem and by file",
         "culet requires --html boot.html -- bin/rails runner 1    with a flame graph",
         "culet requires --sort failed --top 40 -- ruby app.rb",
         "culet requires --json --out boot.json -- bin/rails runner 1",
         "culet requires --tree boot.json",
         "culet requires --diff before.json after.json     two runs compared",
         "culet requires --unused -- bundle exec puma      code that never ran, at exit",
         "culet requires --unused 4242                     the same of a running process"]
      end

      # @return [Integer] exit status
      def execute(words, command)
        check(words, command)
        options.values_at(:html, :out).compact.each { |path| AtomicFile.check(path) }
        return difference(words) if options[:diff]

        conclude(command ? run(command) : read(words.first))
        @status ? status_of(@status) : EXIT_OK
      end

      private

      def define(parser)
        parser.separator("Records the requires of a Ruby program and of its child processes. Their behaviour " \
                         "does not change.")
        parser.separator("")
        parser.on("--tree", "print the tree of requires, not the list of files") { options[:tree] = true }
        orders = Culet::Boot::Table::ORDERS.keys
        parser.on("--sort FIGURE", orders, "sort by #{orders.join(", ")} (default: self)") { |v| options[:sort] = v }
        parser.on("--top N", "lines of each list (default: #{LINES})") do |v|
          options[:top] = whole("--top", v, most: Numbers::MOST_LINES)
        end
        parser.on("--html FILE", "also write a flame graph as an HTML page") { |v| options[:html] = v }
        parser.on("--[no-]retained", "track which objects are retained (default: yes)") { |v| options[:retained] = v }
        parser.on(UNUSED, "list compiled code that never ran; see `culet requires --unused --help`") { nil }
        parser.on("--diff", "compare two files written with --json") { options[:diff] = true }
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
        program = Program.find(command.first)
        program.obstacles.each { |sentence| err.puts("culet: #{sentence}") }
        run = Culet::Boot::Run.new(command: command, program: program.path, follow: options.fetch(:retained, true))
        [out, err].each(&:flush)
        logs = own_stdout? ? run.call : run.call(out: :err)
        @status = run.status
        Culet::Boot::Document.new(logs, command: command, pid: run.pid, status: run.status,
                                            unrecorded: run.unrecorded).to_h
      rescue SystemCallError => e
        raise program.error(e)
      end

      # Where the report is JSON, stdout is one document: the command's own output goes to stderr.
      def own_stdout? = options[:out] || !options[:json]

      def read(path)
        Culet::Boot::Saved.read(path, Culet::Boot::Document::KIND, Culet::Boot::Shapes::DOCUMENT,
                                writer: "culet requires --json")
      end

      def conclude(document)
        draw(document) if options[:html]
        deliver(options[:json] ? JSON.generate(document) : table(document))
      end

      def table(document)
        fitted do
          Culet::Boot::Table.new(document, order: options.fetch(:sort, "self"), lines: options.fetch(:top, LINES),
                                               tree: options[:tree], color: color?).to_s
        end
      end

      def draw(document)
        require_relative "../../../boot/lib/report/flame"
        AtomicFile.write(options[:html], Culet::Boot::Flame.new(document).to_s)
        err.puts("culet: wrote #{options[:html]}")
      end

      def difference(words)
        require_relative "../../../boot/lib/report/difference_table"
        both = Culet::Boot::Difference.new(*words.map { |path| read(path) })
        deliver(options[:json] ? JSON.generate(both.to_h) : difference_table(both))
        EXIT_OK
      end

      def difference_table(both)
        fitted { Culet::Boot::DifferenceTable.new(both, lines: options.fetch(:top, LINES), color: color?).to_s }
      end
    end
  end
end
