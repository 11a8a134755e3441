# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "command"
require_relative "process_arguments"
require_relative "../tools/doctor"
require_relative "../text/lines"

module Culet
  module CLI
    # `culet doctor`: checks a process, or a Ruby started from this shell.
    class Doctor < Command
      include ProcessArguments

      COLORS = { "ok" => 32, "note" => 33, "bad" => 31 }.freeze
      # The verdict, and the space around the topic.
      LABEL_COLUMNS = 8
      # With less width than this, texts continue below their verdict.
      ROOMY = 72
      NARROW_INDENT = 6
      BANNER = "culet doctor [PID|NAME]"
      EXAMPLES = ["culet doctor                 a Ruby started from this shell",
                  "culet doctor 4242            a running process",
                  "culet doctor puma --json     a process by name"].freeze
      private_constant :COLORS, :LABEL_COLUMNS, :ROOMY, :NARROW_INDENT

      private

      # @return [Integer] 1 where a finding is bad
      def execute(words, *)
        if words.size > 1
          raise UsageError, "`culet doctor` takes at most one process number or name; see `culet doctor --help`"
        end

        return with_fresh_ruby { |pid| examine(pid, fresh: true) } if words.empty?

        examine(one_named(words.first, files: false), fresh: false)
      end

      def define(parser)
        paragraph(parser, "Exits with 1 if a finding is bad. Without a process, it starts a Ruby and checks that.")
        define_names(parser)
      end

      def examine(pid, fresh:)
        doctor = Culet::Doctor.new(pid, subject: fresh ? "PID" : pid)
        deliver(formatted(document(doctor, fresh)) { report(doctor, fresh) })
        doctor.findings.any? { |finding| finding.verdict == "bad" } ? EXIT_FAILED : EXIT_OK
      end

      # A Ruby as this environment starts it. It waits at its standard input, so it ends with us, however we end.
      def with_fresh_ruby
        program = Program.find(RbConfig.ruby)
        Open3.popen2(program.path, "-e", "puts; $stdout.flush; $stdin.read") do |input, output, process|
          raise Error, "#{program.path} does not start; run `#{program.path} -e 1` to see why" unless output.gets

          yield process.pid
        ensure
          input.close
        end
      end

      def document(doctor, fresh)
        target = doctor.target
        { "pid" => fresh ? nil : target.pid, "executable" => target.executable,
          "allocator" => { "name" => target.allocator, "library" => target.search_order.serving,
                           "dormant" => target.dormant? },
          "findings" => doctor.findings.map { |finding| finding.to_h.transform_keys(&:to_s) } }
      end

      def report(doctor, fresh)
        target = doctor.target
        subject = if fresh
                    "A Ruby started from this shell (#{target.executable})"
                  else
                    "Process #{target.pid} (#{Processes::Identity.new(target.pid).title})"
                  end
        width = doctor.findings.map { |finding| finding.topic.size }.max
        lines = doctor.findings.flat_map { |finding| lines_of(finding, width) }
        [subject, "", *lines].join("\n")
      end

      def lines_of(finding, width)
        label = finding.verdict.ljust(4)
        label = "\e[#{COLORS.fetch(finding.verdict)}m#{label}\e[0m" if color?
        indent = (Text::Lines.columns || ROOMY) < ROOMY ? NARROW_INDENT : width + LABEL_COLUMNS
        lines = ["#{label}  #{finding.topic.ljust(width)}  #{plain_text(finding.text)}"]
        lines << "#{" " * indent}#{plain_text(finding.remedy)}" if finding.remedy
        lines.map { |line| Text::Lines.fold(line, indent: indent) }
      end

      # Some of it comes from the process: its environment, its paths.
      def plain_text(text) = Text::Lines.printable(text)
    end
  end
end
