# frozen_string_literal: true

require_relative "command"
require_relative "command_run"
require_relative "../allocators"
require_relative "../tools/trace"
require_relative "../text/size"

module Culet
  module CLI
    # `culet trace`: runs a command and records every allocation that it makes.
    class Trace < Command
      include CommandRun

      DEFAULT_FILE = "culet.trace"
      # A file is no larger anywhere.
      MOST_BYTES = 1 << 60
      BANNER = "culet trace [-o FILE] [options] -- COMMAND [ARGUMENT ...]"
      EXAMPLES = ["culet trace -- ruby job.rb         write culet.trace",
                  "culet trace -o puma.trace --limit 1G -- bundle exec puma",
                  "culet trace -o job.trace --allocator culet -- ruby job.rb",
                  "culet replay job.trace"].freeze
      private_constant :MOST_BYTES

      private

      # @return [Integer] the command's own exit status
      def execute(words, command)
        check_command(words, command, "culet trace [-o FILE] -- COMMAND ...")
        recording = nil
        headers = launch(command) do |path|
          recording = recording(command, path)
          recording.call(**redirections)
        end
        report(recording, headers)
      end

      def define(parser)
        paragraph(parser, "Writes the allocations of the command to FILE, and those of each child process to " \
                          "FILE.PID. The trace of a killed process lacks its last operations. An existing " \
                          "trace is replaced. C++ new is recorded where it calls malloc.")
        parser.on("-o FILE", "write the trace to FILE, as --out does (default: #{DEFAULT_FILE})") do |v|
          options[:out] = v
        end
        option(parser, "-a", "--allocator NAME[:SETTING]",
               "allocator of the command while it is recorded (default: glibc)")
        option(parser, "--limit SIZE", "largest trace of one process, e.g. 500M; the command continues without it") do |v|
          bytes("--limit", v, takes: "a size of at least 64K, e.g. 500M or 2G", least: 64 << 10, most: MOST_BYTES)
        end
      end

      def destination = Culet::Trace::Files.new(options.fetch(:out, DEFAULT_FILE))

      def recording(command, path)
        Culet::Trace::Recording.new(command: command, program: path, destination: destination,
                                    choice: Allocators.parse(options.fetch(:allocator, "glibc")),
                                    limit_bytes: options[:limit])
      end

      # --out is the trace.
      def redirections = options[:json] ? { out: :err } : {}

      # @return [Integer] exit status
      def report(recording, headers)
        headers.each { |header| warnings(header) }
        status = ended(recording.status)
        options[:json] ? out.puts(JSON.generate(document(recording, headers))) : list(headers)
        status
      end

      def list(headers)
        own, *others = headers
        err.puts("culet: wrote #{own.path} (#{size_of(own)})")
        return if others.empty?

        names = others.map { |one| "#{one.path} (#{size_of(one)})" }
        err.puts("culet: also #{others.size} of child processes: #{names.join(", ")}")
      end

      def warnings(header)
        err.puts("culet: #{header.path} ends before its program did: #{header.stopped}") if header.stopped
        err.puts("culet: #{header.path} lacks #{header.lost} calls made by signal handlers") if header.lost.positive?
      end

      def size_of(header) = Text::Size.human(File.size(header.path))

      def document(recording, headers)
        { "exit_status" => recording.status.exitstatus,
          "signal" => recording.status.termsig,
          "traces" => headers.map(&:to_h) }
      end
    end
  end
end
