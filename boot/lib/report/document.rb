# frozen_string_literal: true

require_relative "../../../lib/culet/version"
require_relative "../../../lib/culet/model/origin"
require_relative "../../../lib/culet/system/foreground"

module Culet
  module Boot
    # The document of `culet requires --json`. Tables, pages and differences are made from it alone, so a saved file
    # gives the same reports.
    class Document
      # As the verb was called when the format was made.
      KIND = "culet require"
      # Figures of files and gems, without required files.
      SUMS = %w[self_seconds self_cpu_seconds objects object_bytes retained_objects retained_bytes mallocs malloc_bytes
                syscalls failed_syscalls other_syscalls iseq_bytes repeats].freeze
      # A process with this many times fewer files than another only started it.
      STARTER = 20
      private_constant :STARTER

      # @param logs [Array<Log>] of all processes
      # @param command [Array<String>]
      # @param pid [Integer] the command's own process
      # @param status [Process::Status, nil] of the command
      # @param unrecorded [Hash{Integer => String}] processes without a recording, and the reason
      def initialize(logs, command:, pid:, status: nil, unrecorded: {})
        @logs = logs
        @command = command.map(&:scrub)
        @pid = pid
        @status = status
        @unrecorded = unrecorded
      end

      # @return [Hash{String => Object}]
      def to_h
        processes = (@logs - [main]).map { |log| { **process(log), "features" => log.features.size } }
        { "kind" => KIND, "culet" => VERSION, "command" => @command, "exit_status" => @status&.exitstatus,
          "signal" => @status&.termsig, **process(main), "features" => features, "gems" => gems, "code" => code,
          "processes" => processes, "problems" => problems }
      end

      private

      # The command's own process, unless it only started the one with the work.
      def main
        @main ||= begin
          most = @logs.max_by { |log| log.features.size }
          own = @logs.select { |log| log.pid == @pid }.max_by { |log| log.features.size }
          own && own.features.size * STARTER >= most.features.size ? own : most
        end
      end

      def process(log)
        { "pid" => log.pid, "parent_pid" => log.parent, "program" => log.program, "ruby" => log.ruby,
          "complete" => log.complete?, "process_seconds" => log.seconds, "total_seconds" => log.total.seconds.round(6),
          "total_cpu_seconds" => log.total.cpu_seconds.round(6) }
      end

      def features
        @features ||= begin
          list = main.features
          numbers = {}.compare_by_identity
          list.each_with_index { |one, index| numbers[one] = index }
          list.map { |one| feature(one, numbers[one.up]) }
        end
      end

      def feature(one, up)
        { "path" => one.path, "name" => one.name, "gem" => Origin.of(one.path || one.up&.path), "how" => one.how,
          "error" => (one.result unless one.result == true), "parent" => up, "begun_seconds" => one.at.round(6),
          "self_seconds" => one.own.seconds.round(6), "self_cpu_seconds" => one.own.cpu_seconds.round(6),
          "total_seconds" => one.total.seconds.round(6), "total_cpu_seconds" => one.total.cpu_seconds.round(6),
          "find_seconds" => one.finding.seconds.round(6), **counts(one), "repeats" => one.repeats,
          "repeated_seconds" => one.repeated_seconds.round(6) }
      end

      # nil for figures that were not counted.
      def counts(one)
        own = one.own
        finding = one.finding
        { "objects" => own.objects, "object_bytes" => own.object_bytes,
          "retained_objects" => (one.retained_objects if main.retained?),
          "retained_bytes" => (one.retained_bytes if main.retained?), "mallocs" => called(own.mallocs),
          "malloc_bytes" => called(own.malloc_bytes), "syscalls" => called(finding.paths),
          "failed_syscalls" => called(finding.failed_paths),
          "other_syscalls" => called([own.paths - finding.paths, 0].max), "iseq_bytes" => one.code_bytes }
      end

      def called(count) = (count if main.calls?)

      def gems
        features.group_by { |one| one["gem"] }
                .map { |name, list| { "gem" => name, "files" => list.count { |one| one["error"].nil? }, **sums(list) } }
                .sort_by { |one| [-one["self_seconds"], one["gem"]] }
      end

      def sums(list) = SUMS.to_h { |key| [key, sum(list, key)] }

      def sum(list, key)
        values = list.filter_map { |one| one[key] }
        return if values.empty?

        values.first.is_a?(Float) ? values.sum.round(6) : values.sum
      end

      # All compiled code at the end, with files loaded before the recording.
      def code
        files = main.codes.group_by { |one| [one.path, one.eval] }.map do |(path, eval), list|
          { "path" => path, "gem" => Origin.of(path), "eval" => eval,
            "iseq_bytes" => list.sum(&:bytes), "count" => list.sum(&:count) }
        end
        { "iseq_bytes" => files.sum { |one| one["iseq_bytes"] }, "count" => files.sum { |one| one["count"] },
          "files" => files.sort_by { |one| [-one["iseq_bytes"], one["path"].to_s] } }
      end

      def problems = [missing, unfinished, uncounted, ended].compact

      def missing
        return if @unrecorded.empty?

        which = if @unrecorded.size == 1
                  "process #{@unrecorded.keys.first} ran Ruby and was"
                else
                  "#{@unrecorded.size} processes ran Ruby and were"
                end
        "this is not all: #{which} not recorded: #{@unrecorded.values.uniq.join("; ")}"
      end

      def unfinished
        return if main.complete?

        "process #{main.pid} ended without its at_exit handlers, so what was left at the end is not known: " \
          "no retained objects, no compiled code"
      end

      def uncounted
        return if main.calls?

        "mallocs and file-system calls were not counted: #{@command.first} does not let a library be preloaded"
      end

      def ended
        return if @status.nil? || @status.success?

        "the command #{Foreground.ending(@status)}; the report has what was recorded until then"
      end
    end
  end
end
