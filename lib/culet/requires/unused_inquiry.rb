# frozen_string_literal: true

require_relative "../errors"
require_relative "../processes"
require_relative "../ruby_options"
require_relative "unused"

module Culet
  module Requires
    # Asks a process that follows which of its code runs (culet/unused): a signal, whose number is in the mark that it
    # leaves in its mappings, and a file that it answers with.
    class UnusedInquiry
      MARK = %r{/memfd:culet-unused:(\d+):(/.*?) \(deleted\)$}
      STEP_SECONDS = 0.05
      PATIENCE_SECONDS = 60
      private_constant :MARK, :STEP_SECONDS, :PATIENCE_SECONDS

      # @param word [String] a process number
      # @raise [Culet::Error] when there is no such process
      def initialize(word, patience: PATIENCE_SECONDS)
        @process = Processes::Live.find(word)
        @patience = patience
      end

      # @return [Hash] the answer, as Unused takes it
      # @raise [Culet::Error] when it does not answer; the message says why and what to do
      def call
        number, folder = mark
        path = "/proc/#{pid}/root#{folder}/#{inner_pid}.json"
        before = stamp(path)
        ::Process.kill(number, pid)
        await(path, before)
        Unused.read(path)
      rescue Errno::EPERM, Errno::EACCES
        raise Error, "process #{pid} belongs to another user; ask as that user or as root"
      rescue Errno::ESRCH
        raise Error, "process #{pid} has ended"
      end

      private

      def pid = @process.pid

      def mark
        match = MARK.match(File.read("/proc/#{pid}/maps")) or raise Error, absence
        [match[1].to_i, match[2]]
      rescue Errno::ENOENT
        raise Error, "process #{pid} has ended"
      end

      def absence
        "process #{pid} does not follow which of its code runs; start it with `culet require --unused -- COMMAND`, or with " \
          "#{RubyOptions.advice("unused")} in its environment"
      end

      # Its number where it lives: that of the innermost of its PID namespaces.
      def inner_pid = @process.status_fields["NSpid"].to_s.split.last || pid

      def stamp(path)
        stat = File.stat(path)
        [stat.ino, stat.mtime]
      rescue Errno::ENOENT
        nil
      end

      # The file bears its name once it is whole.
      def await(path, before)
        deadline = now + @patience
        while stamp(path) == before
          ::Process.kill(0, pid)
          raise Error, "process #{pid} did not answer within #{@patience} s; its main thread may be busy, ask again" if now > deadline

          sleep(STEP_SECONDS)
        end
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
