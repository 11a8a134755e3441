# frozen_string_literal: true

require "securerandom"
require_relative "../../errors"
require_relative "descendants"
require_relative "error_output"

module Culet
  module Compare
    # A process that is measured: started in a process group of its own, without
    # input, its output thrown away and its error output kept for the reason of a
    # failure (ErrorOutput).
    class Child
      # started_at: CLOCK_MONOTONIC in seconds
      attr_reader :pid, :descendants, :started_at

      # @param command [Array<String>]
      # @param environment [Hash{String => String}] the whole environment
      # @param directory [String] where it runs
      # @raise [Culet::Error] when there is no such program
      def initialize(command:, environment:, directory: Dir.pwd)
        @errors = ErrorOutput.new
        @cpu_before = children_cpu
        @started_at = now
        start(command, environment, directory)
      end

      # Waits for the end of the first process.
      #
      # @param seconds [Numeric] at most so long
      # @return [Process::Status, nil] nil when it still runs
      def wait(seconds)
        @waiter.join(seconds)&.value
      end

      # @return [Process::Status, nil] nil while it runs
      def status = @waiter.alive? ? nil : @waiter.value

      # @return [Float] seconds since the start
      def age_seconds = now - started_at

      # From now on only the CPU time of processes collected later counts as this child's. For the case that
      # another child of this process, such as a load generator, was collected meanwhile.
      def restart_cpu_account = @cpu_before = children_cpu

      # @return [Float] wall seconds from start to end; only when it has ended
      def wall_seconds = @ended_at - started_at

      # @return [Float] CPU seconds of the process and all it has waited for; only when it has ended
      def cpu_seconds = @cpu_after - @cpu_before

      # Asks the process to end, waits, then kills it and all that came from it.
      #
      # @param grace_seconds [Numeric] how long it may take to end by itself
      # @yield called several times a second while it may; true ends the patience
      # @return [Float] CPU seconds of processes that only the kill ended
      def stop(grace_seconds: 0)
        return 0.0 if @errors.closed?

        if grace_seconds.positive? && !status
          descendants.signal_group("TERM")
          deadline = now + grace_seconds
          wait(0.05) until status || now > deadline || (block_given? && yield)
        end
        seconds = descendants.kill
        @waiter.join
        seconds
      ensure
        @errors.close
      end

      # @return [String, nil] the line of its error output that tells most about a failure
      def last_words = @errors.last_words

      # @return [String, nil] how it ended when that is a failure: "exited with status 3", "was killed by SIGSEGV"
      def failure(allowed: [])
        return if status.success? || allowed.include?(status.termsig) || allowed.include?(status.exitstatus)
        return "was killed by SIG#{Signal.signame(status.termsig) || status.termsig}" if status.signaled?

        "exited with status #{status.exitstatus}"
      end

      private

      def start(command, environment, directory)
        mark = SecureRandom.hex(16)
        @pid = Process.spawn(environment.merge(Descendants::MARK => mark), [command.first, command.first], *command.drop(1),
                             unsetenv_others: true, pgroup: true, chdir: directory,
                             in: File::NULL, out: File::NULL, err: @errors.file)
        @descendants = Descendants.new(root: @pid, mark: mark)
        @waiter = Thread.new { collect }
        @waiter.report_on_exception = false
      rescue SystemCallError => e
        @errors.close
        raise Error.new("cannot run #{command.first}: #{e.is_a?(Errno::ENOENT) ? "no such program" : e.message.sub(/ - .*/, "")}", exit_status: e.is_a?(Errno::ENOENT) ? 127 : 126)
      end

      def collect
        _, status = Process.wait2(@pid)
        @ended_at = now
        @cpu_after = children_cpu
        status
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # getrusage(RUSAGE_CHILDREN): what was collected so far, with all that those had collected.
      def children_cpu = Process.times.then { |times| times.cutime + times.cstime }
    end
  end
end
