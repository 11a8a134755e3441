# frozen_string_literal: true

require_relative "command"
require_relative "command_run"
require_relative "../system/ruby_options"
require_relative "process_arguments"
require_relative "../model/agent/command"
require_relative "../tools/strings"

module Culet
  module CLI
    # `culet strings`: duplicate strings, and what sharing them would free.
    class Strings < Command
      include CommandRun
      include ProcessArguments

      TOP = 10
      BANNER = "culet strings PID|NAME | DUMP | -- COMMAND ..."
      EXAMPLES = ["#{RubyOptions.advice("agent")} bundle exec puma    load the agent",
                  "culet strings 4242                    a running process with the agent",
                  "culet strings 4242 --no-content       no text leaves the process",
                  "culet strings -- ruby job.rb          a command, at its end",
                  "culet strings --trace -- ruby job.rb  with allocation sites (slower)",
                  "culet strings heap.json               a dump by ObjectSpace.dump_all",
                  "culet strings heap.json --html strings.html"].freeze
      private_constant :TOP

      private

      def execute(words, command)
        check(words, command)
        check_destinations(:html)
        return run(command) if command

        report(findings(source(words.first)))
        EXIT_OK
      end

      # Groups of the page, at least.
      LISTED = 50
      private_constant :LISTED

      def define(parser)
        paragraph(parser, "A running process must have loaded culet/agent. It is stopped while a copy of it is " \
                          "forked. Files that contain string text are private (mode 0600).")
        define_names(parser)
        option(parser, "--html FILE", "write an HTML page with all tables")
        number(parser, "--top N", "number of groups, gems and files to list (default: #{TOP})",
               most: Numbers::MOST_LINES)
        option(parser, "--no-content", "print no text; a running process sends digests instead")
        option(parser, "--trace", "record where a command allocates (ObjectSpace.trace_object_allocations)")
        option(parser, "--wait TIME", "wait this long for the main thread (default: 10s)") { |v| bounded("--wait", v) }
      end

      def check(words, command)
        raise UsageError, "give one process number, dump or command" if words.size + (command ? 1 : 0) > 1

        check_subject(words, command, "`culet strings PID`, `culet strings heap.json`")
        return if command || !options[:trace]

        raise UsageError, "--trace needs a command; a running process must call " \
                          "ObjectSpace.trace_object_allocations_start itself"
      end

      def top = options.fetch(:top, TOP)

      def listed = [top, LISTED].max

      def content? = options.fetch(:content, true)

      # A file whose name is a number goes by ./4242.
      def source(word)
        word = one_named(word)
        return Culet::Strings::Dump.new(word) unless word.match?(/\A\d+\z/)

        live(word)
      end

      def live(pid) = Culet::Strings::Live.new(pid, content: content?, wait_seconds: options.fetch(:wait, 10.0))

      def findings(source) = Culet::Strings.findings(source, top: listed, content: content?)

      def run(command)
        environment = options[:trace] ? { "CULET_TRACE_ALLOCATIONS" => "1" } : {}
        process = nil
        found = launch(command, preload: false) do |path|
          process = Culet::Agent::Command.new(command: command, program: path, notes: err, environment: environment,
                                              redirections: redirections) { |pid| findings(live(pid)) }
          process.call
        end
        report(found)
        ended(process.status)
      end

      def report(findings)
        draw(findings)
        text = formatted(Culet::Strings::Document.new(findings, top: top)) do
          Culet::Strings::Table.new(findings, top: options[:top], color: color?)
        end
        deliver(text, secret: content?)
      end

      def draw(findings)
        return unless options[:html]

        require_relative "../tools/strings/html"
        page = Culet::Strings::Html.new(findings, top: listed)
        write_file(options[:html], page.to_s, secret: content?)
      end
    end
  end
end
