# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "program"
require_relative "../requires"
require_relative "../requires/saved"
require_relative "../requires/table"

module Culet
  module CLI
    # `culet require`: runs a command and tells what each of its requires cost.
    class Require < Command
      UNUSED = "--unused"
      private_constant :UNUSED

      def banner = "culet require [options] -- COMMAND ... | FILE.json | --diff BEFORE.json AFTER.json"

      # `culet require --unused` has options of its own.
      def call(argv)
        return super unless argv.take_while { |word| word != "--" }.include?(UNUSED)

        require_relative "require_unused"
        RequireUnused.new(out: out, err: err).call(argv)
      end

      def examples
        ["culet require -- bin/rails runner 1             by gem, and by file",
         "culet require --html boot.html -- bin/rails runner 1    and a flame graph",
         "culet require --sort failed --top 40 -- ruby app.rb",
         "culet require --json --out boot.json -- bin/rails runner 1; culet require --tree boot.json",
         "culet require --diff before.json after.json     two runs",
         "culet require --unused -- bundle exec puma      which compiled code never ran, once it has ended",
         "culet require --unused 4242                     the same now, of a process that is running so"]
      end

      def execute(words, command)
        check(words, command)
        options.values_at(:html, :out).compact.each { |path| AtomicFile.check(path) }
        return difference(words) if options[:diff]

        conclude(command ? run(command) : read(words.first))
      end

      private

      def define(parser)
        parser.separator("Records the requires of a Ruby program and of the processes that come from it, without changing what they do.")
        parser.separator("")
        parser.on("--tree", "the tree of requires in place of the list of files") { options[:tree] = true }
        parser.on("--sort FIGURE", Culet::Requires::Table::ORDERS.keys, "sort by #{Culet::Requires::Table::ORDERS.keys.join(", ")} (default: self)") { |v| options[:sort] = v }
        parser.on("--top N", Integer, "so many lines of each list (default: 15)") { |v| options[:top] = v }
        parser.on("--html FILE", "write a flame graph as a page, too") { |v| options[:html] = v }
        parser.on("--[no-]retained", "whether objects are followed, so that it is known which stay (default: they are)") { |v| options[:retained] = v }
        parser.on(UNUSED, "which compiled code never ran; `culet require --unused --help`") { nil }
        parser.on("--diff", "what differs between two files of --json") { options[:diff] = true }
      end

      def check(words, command)
        raise UsageError, "--top takes a number from 1 on" if options[:top] && options[:top] < 1
        raise UsageError, "give a command or files, not both" if command && words.any?
        raise UsageError, "which command? Write `culet require -- COMMAND ...`" if command ? command.empty? : words.empty?
        raise UsageError, "--diff takes two files of --json" if options[:diff] && words.size != 2
        raise UsageError, "one file at a time; --diff takes two" if words.size > 1 && !options[:diff]
      end

      def run(command)
        program = Program.find(command.first)
        program.obstacles.each { |sentence| err.puts("culet: #{sentence}") }
        run = Culet::Requires::Run.new(command: command, program: program.path, follow: options.fetch(:retained, true))
        [out, err].each(&:flush)
        logs = own_stdout? ? run.call : run.call(out: :err)
        Culet::Requires::Document.new(logs, command: command, pid: run.pid, status: run.status, unrecorded: run.unrecorded).to_h
      rescue SystemCallError => e
        raise Error, "cannot run #{command.first}: #{program.failure(e)}"
      end

      # Where the report is JSON, stdout is one document: the command's own output goes to stderr.
      def own_stdout? = options[:out] || !options[:json]

      def read(path) = Culet::Requires::Saved.read(path, Culet::Requires::Document::KIND, Culet::Requires::Shapes::DOCUMENT)

      def conclude(document)
        draw(document) if options[:html]
        deliver(options[:json] ? JSON.generate(document) : table(document))
        EXIT_OK
      end

      def table(document)
        Culet::Requires::Table.new(document, order: options.fetch(:sort, "self"), lines: options.fetch(:top, 15), tree: options[:tree], color: color?).to_s
      end

      def draw(document)
        require_relative "../requires/flame"
        AtomicFile.write(options[:html], Culet::Requires::Flame.new(document).to_s)
        err.puts("culet: wrote #{options[:html]}")
      end

      def difference(words)
        require_relative "../requires/difference_table"
        both = Culet::Requires::Difference.new(*words.map { |path| read(path) })
        deliver(options[:json] ? JSON.generate(both.to_h) : Culet::Requires::DifferenceTable.new(both, lines: options.fetch(:top, 15), color: color?).to_s)
        EXIT_OK
      end
    end
  end
end
