# frozen_string_literal: true

require "tmpdir"
require_relative "command"
require_relative "command_run"
require_relative "process_arguments"
require_relative "../../../boot/lib/report/unused"
require_relative "../../../boot/lib/report/unused_table"
require_relative "../system/ruby_options"

module Culet
  module CLI
    # `culet requires --unused`: compiled code that never ran.
    class RequiresUnused < Command
      include CommandRun
      include ProcessArguments

      # Of each list, unless more is asked for.
      LINES = 15
      private_constant :LINES

      BANNER = "culet requires --unused PID|NAME ... | -- COMMAND ... | FILE.json"

      EXAMPLES = ["culet requires --unused -- bundle exec puma    all its processes, at exit",
                  "culet requires --unused puma                   a running server and its workers",
                  "#{RubyOptions.advice("unused")} bundle exec puma   prepare a server",
                  "CULET_UNUSED_FROM=asked RUBYOPT=... bundle exec puma    from a request on",
                  "culet requires --unused --json --out unused.json 4242",
                  "culet requires --unused unused.json"].freeze

      # @return [String] name of the verb
      def verb = "requires --unused"

      # @return [String] one line for the overview
      def summary = "list the compiled code of a program that never ran"

      # @return [Integer] exit status
      def execute(words, command)
        check_subject(words, command, "`culet requires --unused PID`")
        document = document(words, command)
        deliver(formatted(document) do
          Culet::Boot::UnusedTable.new(document, lines: options.fetch(:top, LINES), color: color?)
        end)
        @status || EXIT_OK
      end

      private

      def define(parser)
        paragraph(parser, "Lists by gem and file the bytes of methods and blocks that never ran. Code that was " \
                          "loaded before culet/unused, and code evaluated from strings, is listed apart.")
        define_names(parser)
        option(parser, "--unused", "select this report")
        number(parser, "--top N", "lines of each list (default: #{LINES})", most: Numbers::MOST_LINES)
      end

      def document(words, command)
        return Culet::Boot::Unused.new(run(command)).to_h if command
        return Culet::Boot::Unused.load(words.first) if words.size == 1 && file?(words.first)

        Culet::Boot::Unused.new(all_named(words).map { |word| Culet::Boot::UnusedInquiry.new(word).call }).to_h
      end

      # @return [Array<Hash>] of each process that ended in its own time
      def run(command)
        Dir.mktmpdir("culet-unused") do |folder|
          status = launch(command, preload: false) { |path| start(path, command, folder) }
          answers = Dir[File.join(folder, "*.json")].map { |path| Culet::Boot::Unused.read(path) }
          if answers.empty?
            raise Foreground.error("nothing was recorded: #{command.first} #{Foreground.ending(status)}, and no Ruby " \
                                   "process that loaded culet exited normally", status)
          end

          @status = ended(status)
          answers
        end
      end

      def start(path, command, folder)
        environment = { "CULET_UNUSED" => folder, "RUBYOPT" => RubyOptions.requiring(RubyOptions.file("unused")) }
        Foreground.new(environment, path, command).call(**redirections)
      end
    end
  end
end
