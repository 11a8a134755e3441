# frozen_string_literal: true

require "securerandom"
require "tempfile"
require_relative "../errors"
require_relative "../system/clock"
require_relative "../system/descendants"

module Culet
  module Benchmark
    # The error output of a measured process, in an unlinked file, and the line of it that explains a failure.
    class ErrorOutput
      # Ruby's crash report starts with its reason; other programs print theirs last.
      HEAD_BYTES = 65_536
      TAIL_BYTES = 4_096
      CHARACTERS = 200
      private_constant :HEAD_BYTES, :TAIL_BYTES, :CHARACTERS

      # A crash of Ruby, and a misuse that the allocator stopped.
      CRASH = /\[BUG\]|\Aculet: /
      EXCEPTION = /\((?:[A-Z]\w*::)*[A-Z]\w*\)\z/
      TRACE = /\A(?:from |\.{3}|\d+: from)/
      private_constant :CRASH, :EXCEPTION, :TRACE

      # @return [File] for the process
      attr_reader :file

      def initialize
        @file = Tempfile.create("culet-errors")
        File.unlink(@file.path)
      end

      # Closes the file; the diagnostic is kept.
      def close
        return if closed?

        @diagnostic = diagnostic
        file.close
      end

      def closed? = file.closed?

      # @param path [String] the file to copy it to
      def save(path) = IO.copy_stream(file, path, nil, 0)

      # @return [String, nil] one line of at most 200 characters; nil when there is none
      def diagnostic
        return @diagnostic if closed?

        tail = lines(TAIL_BYTES, [file.size - TAIL_BYTES, 0].max)
        found = lines(HEAD_BYTES, 0).grep(CRASH).first || tail.grep(EXCEPTION).last || tail.grep_v(TRACE).last
        found&.slice(0, CHARACTERS)
      end

      private

      # pread does not move the file position, which the process shares.
      def lines(bytes, offset)
        return [] if file.size.zero? # rubocop:disable Style/ZeroLengthPredicate

        text = file.pread([bytes, file.size - offset].min, offset)
        text.force_encoding(Encoding::UTF_8).scrub("?").lines.map(&:strip).reject(&:empty?)
      end
    end

    # The measured process: in its own process group, unless asked without input or output; its error output is kept
    # (ErrorOutput).
    class Child
      # Kills the process group of the child when the pipe ends without a second line, as it does with a killed culet.
      GUARD = ["/bin/sh", "-c", 'read -r group; read -r _ || kill -s KILL -- "-$group"'].freeze
      private_constant :GUARD

      # started_at: CLOCK_MONOTONIC in seconds
      attr_reader :pid, :descendants, :started_at

      # @param command [Array<String>]
      # @param environment [Hash{String => String}] the whole environment
      # @param directory [String] where it runs
      # @param streams [Hash] in: and out:, as for Process.spawn
      # @raise [Culet::Error] when the program cannot be started
      def initialize(command:, environment:, directory: Dir.pwd, **streams)
        @errors = ErrorOutput.new
        @guard = IO.popen(GUARD, "w", pgroup: true, out: File::NULL, err: File::NULL)
        @cpu_before = children_cpu
        @started_at = Clock.now
        start(command, environment, chdir: directory, in: File::NULL, out: File::NULL, **streams)
      end

      # Waits for the process.
      #
      # @param seconds [Numeric] at most
      # @return [Process::Status, nil] nil while it runs
      def wait(seconds) = @waiter.join(seconds)&.value

      # @return [Process::Status, nil] nil while it runs
      def status = @waiter.alive? ? nil : @waiter.value

      # @return [Float] seconds since the start
      def age_seconds = Clock.now - started_at

      # Excludes the CPU time of other children, such as a load generator, that ended before this call.
      def restart_cpu_account = @cpu_before = children_cpu

      # @return [Float] wall seconds from start to end; after the end
      def wall_seconds = @ended_at - started_at

      # @return [Float] CPU seconds of the process and of the children it waited for; after the end
      def cpu_seconds = @cpu_after - @cpu_before

      # Sends SIGTERM, waits, then kills the process and all its descendants.
      #
      # @param grace_seconds [Numeric] time to exit after SIGTERM; 0: no SIGTERM
      # @yield called several times a second during that time; true ends it
      # @return [Float] CPU seconds of the killed processes
      def stop(grace_seconds: 0)
        return 0.0 if @errors.closed?

        if grace_seconds.positive? && !status
          descendants.signal_group("TERM")
          deadline = Clock.now + grace_seconds
          wait(0.05) until status || Clock.now > deadline || (block_given? && yield)
        end
        seconds = descendants.kill
        @waiter.join
        seconds
      ensure
        dismiss_guard
        @errors.close
      end

      # @return [String, nil] the most telling line of its error output
      def diagnostic = @errors.diagnostic

      # @param path [String] gets all of its error output
      def save_errors(path) = @errors.save(path)

      # @return [String, nil] "exited with status 3", "was killed by SIGSEGV"; nil on success
      def failure(allowed: [])
        return if status.success? || allowed.include?(status.termsig) || allowed.include?(status.exitstatus)
        return "was killed by SIG#{Signal.signame(status.termsig) || status.termsig}" if status.signaled?

        "exited with status #{status.exitstatus}"
      end

      private

      # Without a second line, the guard would kill a group whose number another one may have by now.
      def dismiss_guard
        @guard.puts unless @guard.closed?
      rescue Errno::EPIPE
        nil # the guard was killed
      ensure
        @guard.close
      end

      def start(command, environment, **options)
        mark = SecureRandom.hex(16)
        @pid = Process.spawn(environment.merge(Descendants::MARK => mark),
                             [command.first, command.first], *command.drop(1),
                             unsetenv_others: true, pgroup: true, err: @errors.file, **options)
        @guard.puts(@pid)
        @descendants = Descendants.new(root: @pid, mark: mark)
        @waiter = Thread.new { collect }
        @waiter.report_on_exception = false
      rescue SystemCallError => e
        [@guard, @errors].each(&:close)
        missing = e.is_a?(Errno::ENOENT)
        raise Error.new("cannot run #{command.first}: #{missing ? "no such program" : Error.reason(e)}",
                        exit_status: missing ? 127 : 126)
      end

      def collect
        _, status = Process.wait2(@pid)
        @ended_at = Clock.now
        @cpu_after = children_cpu
        status
      end

      # getrusage(RUSAGE_CHILDREN): of all children that were waited for.
      def children_cpu = Process.times.then { |times| times.cutime + times.cstime }
    end
  end
end
