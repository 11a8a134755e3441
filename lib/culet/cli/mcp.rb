# frozen_string_literal: true

require "json"
require "stringio"
require_relative "command"
require_relative "process_arguments"
require_relative "../tools/mcp/bounded"
require_relative "../tools/report"

module Culet
  module CLI
    # `culet mcp`: a server over stdio for coding agents. Its tools read, and run the verbs with --json.
    class Mcp < Command
      include ProcessArguments

      BANNER = "culet mcp"
      EXAMPLES = ["claude mcp add culet -- culet mcp    register it in Claude Code"].freeze
      MOST_SECONDS = 600
      PROCESS = { process: { type: "string", maxLength: 200,
                             description: "process number, or a name such as puma, which stands for the first " \
                                          "process of its tree" } }.freeze
      # Tool => [description, seconds by default (nil: it takes no time)].
      TOOLS = {
        "processes" => ["List the Ruby process trees that may be read: pid, title, PSS. Call it first.", nil],
        "explain" => ["Say why a process tree is so large: verdict, evidence, remedies ranked by what they save. " \
                      "Start here; it watches for the given seconds.", 30],
        "report" => ["Show where the memory of one process is, by level. Quick.", nil],
        "profile" => ["Show the code that allocated the memory in use. Needs culet/profile or culet/agent in the " \
                      "process; without culet's allocator it has Ruby objects alone.", 10],
        "retain" => ["Show which constants, variables and closures keep most memory. Needs culet/agent in the process.",
                     nil],
        "diff" => ["Show what grew in one process within the given seconds.", 10]
      }.freeze
      STARTING = Mutex.new
      private_constant :MOST_SECONDS, :PROCESS, :TOOLS, :STARTING

      private

      def define(parser)
        paragraph(parser, "Speaks the Model Context Protocol on stdin and stdout, until stdin closes. The tools " \
                          "(#{TOOLS.keys.join(", ")}) read processes; they write no files, run no commands, and show " \
                          "no contents of Strings.")
      end

      def execute(words, *)
        raise UsageError, "`culet mcp` takes no arguments" if words.any?
        if options.key?(:out) || options.key?(:json)
          raise UsageError, "`culet mcp` takes no --out and no --json; stdout has its protocol"
        end

        load_gem
        serve
        EXIT_OK
      end

      def load_gem
        require "mcp"
        require_relative "mcp/transport"
      rescue LoadError
        raise MissingGem.new("`culet mcp`", "mcp")
      end

      def serve
        transport = Transport.new(server)
        # The gem prints a line for an Interrupt.
        trap("INT") { exit }
        transport.open
      rescue SystemExit
        raise Interrupt
      ensure
        transport&.finish
      end

      def server
        ::MCP::Server.new(name: "culet", version: VERSION).tap do |made|
          TOOLS.each { |name, (description, seconds)| add(made, name, description, seconds) }
        end
      end

      def add(server, name, description, seconds)
        hints = { read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false }
        answer = method(:answer)
        server.define_tool(name: name, description: description, input_schema: schema(name, seconds),
                           annotations: hints) do |server_context:, **given|
          text, failed = answer.call(name, given, seconds, server_context)
          ::MCP::Tool::Response.new([{ type: "text", text: text }], error: failed)
        end
      end

      def schema(name, seconds)
        return { properties: {}, additionalProperties: false } if name == "processes"

        time = seconds && { seconds: { type: "integer", minimum: 1, maximum: MOST_SECONDS, default: seconds } }
        { properties: { **PROCESS, **time.to_h }, required: ["process"], additionalProperties: false }
      end

      # In a process of its own: the watch can be ended, and the server stays small.
      #
      # @return [Array(String, Boolean)] the text, and whether it is a failure
      def answer(name, given, seconds, context)
        pid, reader = start(name, given[:process], given.fetch(:seconds, seconds))
        watch_cancellation(context, pid)
        status, text = reader.read.split("\n", 2)
        return [text, status != "done"] if text

        ["the reading was ended", true]
      ensure
        reader&.close
        ended(pid) if pid
      end

      # One at a time: a process that is forked meanwhile would keep the end of the pipe open.
      #
      # @return [Array(Integer, IO)] process number, and where its answer comes
      def start(name, process, seconds)
        STARTING.synchronize do
          reader, writer = IO.pipe
          pid = fork { work(writer, name, process, seconds) }
          writer.close
          [pid, reader]
        end
      end

      def watch_cancellation(context, pid)
        Transport.children << pid
        Thread.new do
          sleep(0.1) until context.cancelled? || !Transport.children.include?(pid)
          Transport.stop(pid)
        end
      end

      def ended(pid)
        Transport.children.delete(pid)
        ::Process.wait(pid)
      end

      def work(writer, name, word, seconds)
        $stdin.reopen(File::NULL)
        $stdout.reopen(File::NULL)
        %w[INT TERM].each { |signal| trap(signal, "DEFAULT") }
        @err = @notes = StringIO.new
        found = document(name, word, seconds)
        writer.write("done\n", Culet::Mcp::Bounded.new(notes.any? ? found.merge("notes" => notes) : found).to_s)
      rescue StandardError => e
        writer.write("failed\n", e.message)
      ensure
        writer.close
        exit!(true)
      end

      def document(name, word, seconds)
        return readable if name == "processes"

        @tool = name
        pid = Processes::Live.find(one_named(word, files: false)).pid
        return difference(pid, seconds) if name == "diff"

        run(name, pid.to_s, *(["--for", "#{seconds}s"] if seconds))
      end

      def readable
        { "processes" => Processes::Search.ruby_roots.map do |pid|
          { "pid" => pid, "title" => Processes::Identity.new(pid).title,
            "processes" => Processes::Tree.new(pid).pids.size,
            "pss_bytes" => Processes::Tree.new(pid).pids.sum { |one| Processes::Memory.pss_bytes(one).to_i } }
        end.sort_by { |one| -one["pss_bytes"] } }
      end

      def difference(pid, seconds)
        before = packed_snapshots(pid.to_s, chunks: 0).last.snapshot
        sleep(seconds)
        Culet::Report::Difference.new(before, packed_snapshots(pid.to_s, chunks: 0).last.snapshot).to_h
                                 .then { |found| JSON.parse(JSON.generate(found)) }
      end

      def verb = @tool || super

      # @return [Object] the verb's document
      def run(*words)
        out = StringIO.new
        status = CLI.run([*words, "--json"], out: out, err: @notes)
        raise Error, notes.last || "`culet #{words.first}` failed" if status != EXIT_OK

        JSON.parse(out.string)
      end

      # @return [Array<String>] the verb's messages beside its document, without those on progress
      def notes = @notes.string.lines(chomp: true).map { |line| line.delete_prefix("culet: ") }.grep_v(/Ctrl-C/)
    end
  end
end
