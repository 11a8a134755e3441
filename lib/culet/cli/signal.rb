# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "numbers"
require_relative "process_arguments"
require_relative "../tools/agent/inquiry"
require_relative "../system/ruby_options"
require_relative "../text/size"

module Culet
  module CLI
    # `culet signal`: a snapshot with counts of Ruby objects.
    class Signal < Command
      include ProcessArguments

      # @return [String] the usage of the verb
      def banner = "culet signal PID|NAME [--out FILE]"

      # @return [Array<String>] examples for --help
      def examples
        ["#{RubyOptions.advice("agent")} bundle exec puma    load the agent",
         "culet signal 4242                               write culet-4242.snapshot",
         "culet signal 4242 --out now.snapshot; culet report now.snapshot"]
      end

      # @return [Integer] exit status
      def execute(words, command)
        if command
          raise UsageError, "`culet signal` does not run a command; give a process number, e.g. `culet signal 4242`"
        end
        raise UsageError, "no process given; write `culet signal PID` or `culet signal puma`" unless words.size == 1

        pid = one_named(words.first, files: false)
        reader = Culet::Scope::Reader.new(pid, **treatment)
        supplement = inquiry(pid).call
        path = options.fetch(:out, "culet-#{reader.pid}.snapshot")
        Culet::Scope::Series.new(path).write { |series| series.add(supplement.stream(reader.stream)) }
        conclude(path, supplement.fact("objects"))
        EXIT_OK
      end

      private

      def define(parser)
        parser.separator("The agent in the process (culet/agent) counts the Ruby objects in the main thread; " \
                         "then culet reads the process as `culet snapshot` does. The signals that servers " \
                         "use are not sent.")
        parser.separator("")
        define_names(parser)
        parser.on("--wait TIME", "wait this long for the main thread (default: 10s)") do |v|
          options[:wait] = bounded("--wait", v)
        end
        parser.on("--limit TIME", "stop counting after TIME, which leaves the counts incomplete (default: 10s); " \
                                  "Ruby is paused while it counts") { |v| options[:limit] = bounded("--limit", v) }
        parser.on("--[no-]data", "include the sizes of C extension objects (default: yes); " \
                                 "a faulty extension can crash here") { |v| options[:data] = v }
        define_treatment(parser)
      end

      # The agent lets nobody wait longer.
      LONGEST_SECONDS = 600
      private_constant :LONGEST_SECONDS

      def bounded(flag, text)
        seconds = Duration.seconds(flag, text)
        return seconds if seconds <= LONGEST_SECONDS

        raise UsageError, "#{flag} takes ten minutes (10m) at most, not #{text.inspect}"
      end

      def inquiry(word)
        limit = options.fetch(:limit, Culet::Agent::Supplement::LIMIT_SECONDS)
        Culet::Agent::Inquiry.new(word, data: options.fetch(:data, true), limit_seconds: limit,
                                        wait_seconds: options.fetch(:wait, 10.0))
      end

      def conclude(path, objects)
        size = File.file?(path) ? Text::Size.human(File.size(path)) : "to a device"
        err.puts("culet: wrote #{path} (#{size}); #{counting(objects)}")
        return unless options[:json]

        out.puts(JSON.generate("path" => path, "objects" => objects["count"],
                               "count_seconds" => objects["seconds"], "complete" => objects["complete"]))
      end

      def counting(objects)
        return "it has no object counts: #{objects["why"]}" unless objects["why"].empty?

        text = format("%d objects counted in %.1f ms", objects["count"], 1000 * objects["seconds"])
        objects["complete"] ? text : "#{text}; incomplete, because the time limit was reached"
      end
    end
  end
end
