# frozen_string_literal: true

require "etc"

module Culet
  module Processes
    # CPU time of a process, from /proc/PID/stat (see proc(5)).
    module Cpu
      TICKS_PER_SECOND = Etc.sysconf(Etc::SC_CLK_TCK)

      # Fields 3, 4, 10, 14 to 17, 20, 22 and 23 of proc(5), behind the command, which may itself contain parentheses.
      # The few strings that a match makes are fewer than those of a split.
      FIELDS = /\)\ (?<state>\S)\ (?<parent>\d+)(?:\ \S+){5}\ (?<faults>\d+)(?:\ \S+){3}\ (?<user>\d+)\ (?<system>\d+)
                \ (?<children_user>\d+)\ (?<children_system>\d+)(?:\ \S+){2}\ (?<threads>\d+)\ \S+
                \ (?<start>\d+)\ (?<virtual>\d+)/x
      # States of what has ended; nil: it is not there.
      ENDED = [nil, "Z", "X"].freeze
      # The clock type in the id of another process's clock (clock_getcpuclockid(3)).
      CLOCK_SCHED = 2
      private_constant :FIELDS, :CLOCK_SCHED

      module_function

      # User and system time of the process and of those of its children that it has waited for.
      #
      # @return [Float, nil] seconds; nil when the process has ended
      def seconds(pid)
        fields = stat(pid)
        fields && %i[user system children_user children_system].sum { |name| fields[name].to_i }.fdiv(TICKS_PER_SECOND)
      end

      # CPU time, of the process itself to the microsecond, where /proc has ticks of 10 ms.
      #
      # @return [Float, nil] seconds of the process and of its children that have ended; nil when it has ended
      def exact_seconds(pid)
        fields = stat(pid) or return
        own = ::Process.clock_gettime((~pid << 3) | CLOCK_SCHED)
        own + %i[children_user children_system].sum { |name| fields[name].to_i }.fdiv(TICKS_PER_SECOND)
      rescue Errno::EINVAL, Errno::ESRCH
        nil
      end

      # When the process started. Together with its number it tells a process from a later one with the same number.
      #
      # @return [Integer, nil] clock ticks since the machine started; nil when the process has ended
      def start_ticks(pid) = stat(pid)&.[](:start)&.to_i

      # Asked once, so that the start of a process does not change with the clock.
      #
      # @return [Float] when the machine was started, in seconds since 1970
      def booted_at
        @booted_at ||= ::Process.clock_gettime(::Process::CLOCK_REALTIME) -
                       ::Process.clock_gettime(::Process::CLOCK_BOOTTIME)
      end

      # @return [Float, nil] seconds since the process was forked; nil when it has ended
      def age_seconds(pid)
        ticks = start_ticks(pid)
        ticks && (::Process.clock_gettime(::Process::CLOCK_BOOTTIME) - ticks.fdiv(TICKS_PER_SECOND))
      end

      # @return [Integer, nil] the parent's number; nil when the process has ended
      def parent(pid) = stat(pid)&.[](:parent)&.to_i

      # Asked of the other threads only once the main thread has ended, which it may do at any time.
      #
      # @return [String, nil] the state's letter, "Z" for a process that has ended and not been waited for
      def state(pid)
        own = thread_state(pid)
        own == "Z" ? thread_state(LivingThread.of(pid)) : own
      end

      # @return [Boolean] whether it is there, and has not ended
      def alive?(pid) = !ENDED.include?(state(pid))

      # @param thread [Integer] a thread, or a process, whose main thread is asked
      # @return [String, nil] the state's letter, "Z" for a main thread that has ended; nil when there is no such thread
      def thread_state(thread) = stat(thread)&.[](:state)

      # @param text [String] the content of /proc/PID/stat, in bytes
      # @return [MatchData, nil] by name: state, parent, faults, user, system, children_user, children_system, threads,
      #   start, virtual; nil: it is incomplete
      def fields(text) = FIELDS.match(text, text.rindex(")") || 0)

      # @param pid [Integer] a process or thread
      # @return [MatchData, nil] as of `fields`; nil: there is none, or it may not be read
      def stat(pid)
        fields(File.binread("/proc/#{pid}/stat"))
      rescue *GONE_OR_FORBIDDEN
        nil
      end
    end

    # The thread whose files in /proc tell of a process's memory. A main thread that has ended before the others stays
    # in the list as a zombie, without memory.
    module LivingThread
      module_function

      # @param pid [Integer] a process
      # @return [Integer] its main thread, whose number is the process's; where that has ended, one that has not, if any
      def of(pid)
        return pid unless Cpu.thread_state(pid) == "Z"

        threads = Dir.children("/proc/#{pid}/task").map(&:to_i)
        threads.find { |thread| !Cpu::ENDED.include?(Cpu.thread_state(thread)) } || pid
      rescue *GONE_OR_FORBIDDEN
        pid
      end
    end
  end
end
