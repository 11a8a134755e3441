# frozen_string_literal: true

require_relative "command"
require_relative "process_arguments"
require_relative "../model/agent/inquiry"
require_relative "../system/interruption"
require_relative "../text/size"

module Culet
  module CLI
    # `culet snapshot`: keeps what a process's memory consists of in a file.
    class Snapshot < Command
      include ProcessArguments

      BANNER = "culet snapshot PID|NAME [--objects] [--out FILE] [--every TIME [--for TIME]]"
      EXAMPLES = ["culet snapshot 4242                        write culet-4242.snapshot",
                  "culet snapshot 4242 --out before.snapshot",
                  "culet snapshot 4242 --objects              with counts of Ruby objects",
                  "culet snapshot 4242 --every 10s --for 1h   a series of 360 in one file",
                  "culet report before.snapshot; culet diff before.snapshot after.snapshot"].freeze

      private

      def execute(words, *)
        raise UsageError, "no process given; write `culet snapshot PID` or `culet snapshot puma`" if words.empty?
        raise UsageError, "a snapshot has one process; give one number or name" if words.size > 1
        raise UsageError, "--for needs --every, e.g. --every 10s --for 1h" if options[:for] && !options[:every]

        check_objects
        pid = one_named(words.first, files: false)
        reader = Culet::Scope::Reader.new(pid, **treatment, chunks: options[:every] && 0)
        options[:objects] ? take_with_objects(reader, pid) : take(reader)
      end

      def define(parser)
        paragraph(parser, "A snapshot holds sizes and states, never contents. The file is private (mode 0600) " \
                          "and appears when it is complete. A series has no single blocks, only the use of " \
                          "each page. With --objects the agent in the process first counts the Ruby objects, in the " \
                          "main thread; the signals that servers use are not sent.")
        define_names(parser)
        duration(parser, "--every TIME", "repeat at this interval (10s, 5m), into the same file, until Ctrl-C")
        duration(parser, "--for TIME", "stop after TIME (30m, 1h)")
        define_objects(parser)
        define_treatment(parser)
      end

      def define_objects(parser)
        option(parser, "--objects", "count the Ruby objects too; the process must have loaded culet/agent")
        option(parser, "--wait TIME", "with --objects: wait this long for the main thread (default: 10s)") do |v|
          bounded("--wait", v)
        end
        option(parser, "--limit TIME", "with --objects: stop counting after TIME, which leaves the counts incomplete " \
                                       "(default: 10s); Ruby is paused while it counts") { |v| bounded("--limit", v) }
        option(parser, "--[no-]data", "with --objects: include the sizes of C extension objects (default: yes); " \
                                      "a faulty extension can crash here")
      end

      def check_objects
        needless = { wait: "--wait", limit: "--limit", data: "--data" }.find { |name, _| options.key?(name) }
        raise UsageError, "#{needless.last} needs --objects" if needless && !options[:objects]
        raise UsageError, "--objects counts once; leave out --every" if options[:objects] && options[:every]
      end

      def take_with_objects(reader, pid)
        supplement = Culet::Agent::Inquiry.new(pid, **asked).call
        path = path_for(reader)
        Culet::Scope::Series.new(path).write { |series| series.add(supplement.stream(reader.stream)) }
        objects = supplement.fact("objects")
        err.puts("culet: wrote #{path} (#{size(path)}); #{counting(objects)}")
        answer(path, 1, objects["complete"], "objects" => objects["count"], "count_seconds" => objects["seconds"])
        EXIT_OK
      end

      def asked
        { data: options.fetch(:data, true), limit_seconds: options[:limit], wait_seconds: options[:wait] }.compact
      end

      # @param objects [Hash] of the agent's answer
      def counting(objects)
        return "it has no object counts: #{objects["why"]}" unless objects["why"].empty?

        number = Text::Numbers.count(objects["count"], "object")
        text = format("#{number} counted in %.1f ms", 1000 * objects["seconds"])
        objects["complete"] ? text : "#{text}; incomplete, because the time limit was reached"
      end

      def take(reader)
        path = path_for(reader)
        interruption = Culet::Interruption.new
        recorder = Culet::Scope::Recorder.new(reader, every_seconds: options[:every], for_seconds: options[:for],
                                                      interruption: interruption)
        count = Culet::Scope::Series.new(path).write { |series| interruption.watch { recorder.call(series) } }
        conclude(path, count, recorder, interruption)
      end

      def conclude(path, count, recorder, interruption)
        status = interruption.exit_status || EXIT_FAILED
        raise Error.new("#{recorder.early}: no snapshot was written", exit_status: status) if count.zero?

        err.puts("culet: wrote #{path} (#{"#{count} snapshots, " if count > 1}#{size(path)})")
        complete = recorder.early.nil?
        answer(path, count, complete)
        if !complete && options[:for]
          raise Error.new("#{recorder.early}; #{path} has the snapshots up to then", exit_status: status)
        end

        interruption.exit_status || EXIT_OK
      end

      def path_for(reader) = options.fetch(:out, "culet-#{reader.pid}.snapshot")

      def answer(path, count, complete, more = {})
        return unless options[:json]

        out.puts(JSON.generate({ "path" => path, "snapshots" => count, "complete" => complete, **more }))
      end

      def size(path) = File.file?(path) ? Text::Size.human(File.size(path)) : "to a device"
    end
  end
end
