# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require_relative "command"
require_relative "program"
require_relative "../doctor"

module Culet
  module CLI
    # `culet doctor`: looks at a process, or at what a Ruby started here would get.
    class Doctor < Command
      COLORS = { "ok" => 32, "note" => 33, "bad" => 31 }.freeze
      private_constant :COLORS

      def banner = "culet doctor [PID]"

      def examples
        ["culet doctor                        # what a Ruby started from this shell gets",
         "culet doctor 4242                   # a running process",
         "culet doctor $(pgrep -o puma) --json"]
      end

      def execute(words, command)
        if command || words.size > 1
          raise UsageError, "`culet doctor` takes one process number, or none; see `culet doctor --help`"
        end

        words.empty? ? with_fresh_ruby { |pid| examine(pid, fresh: true) } : examine(words.first, fresh: false)
        EXIT_OK
      end

      private

      def examine(pid, fresh:)
        doctor = Culet::Doctor.new(pid)
        deliver(options[:json] ? document(doctor, fresh) : report(doctor, fresh))
      end

      # A Ruby as this environment starts it. It waits at its standard input, so it ends with us, however we end.
      def with_fresh_ruby
        program = Program.find(RbConfig.ruby)
        Open3.popen2(program.path, "-e", "puts; $stdout.flush; $stdin.read") do |input, output, process|
          raise Error, "#{program.path} does not start here; run `#{program.path} -e 1` to see why" unless output.gets

          yield process.pid
        ensure
          input.close
        end
      end

      def document(doctor, fresh)
        target = doctor.target
        JSON.pretty_generate(
          "pid" => fresh ? nil : target.pid, "executable" => target.executable,
          "allocator" => { "name" => target.allocator, "library" => target.search_order.serving,
                           "dormant" => target.dormant? },
          "findings" => doctor.findings.map { |finding| finding.to_h.transform_keys(&:to_s) }
        )
      end

      def report(doctor, fresh)
        target = doctor.target
        subject = fresh ? "A Ruby started from here (#{target.executable})" : "Process #{target.pid} (#{title(target)})"
        width = doctor.findings.map { |finding| finding.topic.size }.max
        lines = doctor.findings.flat_map { |finding| lines_of(finding, width) }
        [subject, "", *lines].join("\n")
      end

      def title(target)
        words = target.live.command_line
        words.empty? ? target.executable : words.join(" ").slice(0, 80)
      end

      def lines_of(finding, width)
        label = finding.verdict.ljust(4)
        label = "\e[#{COLORS.fetch(finding.verdict)}m#{label}\e[0m" if color?
        first = "#{label}  #{finding.topic.ljust(width)}  #{finding.text}"
        finding.remedy ? [first, "#{" " * (width + 8)}#{finding.remedy}"] : [first]
      end
    end
  end
end
