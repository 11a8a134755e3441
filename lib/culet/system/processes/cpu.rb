# frozen_string_literal: true

require "etc"

module Culet
  module Processes
    # CPU time of a process, from /proc/PID/stat (see proc(5)).
    module Cpu
      TICKS_PER_SECOND = Etc.sysconf(Etc::SC_CLK_TCK)

      # Fields after the command, which is in parentheses and may itself contain spaces and parentheses.
      # Field 3 of proc(5), the state, has index 0.
      STATE = 0
      PARENT = 1
      USER_TICKS = 11
      CHILDREN_SYSTEM_TICKS = 14
      START_TICKS = 19
      private_constant :STATE, :PARENT, :USER_TICKS, :CHILDREN_SYSTEM_TICKS, :START_TICKS

      module_function

      # User and system time of the process and of those of its children that it has waited for.
      #
      # @param pid [Integer]
      # @return [Float, nil] seconds; nil when the process has ended
      def seconds(pid)
        fields = stat(pid)
        fields && (fields[USER_TICKS..CHILDREN_SYSTEM_TICKS].sum(&:to_i).to_f / TICKS_PER_SECOND)
      end

      # When the process started. Together with its number it tells a process from a later one with the same number.
      #
      # @param pid [Integer]
      # @return [Integer, nil] clock ticks since the machine started; nil when the process has ended
      def start_ticks(pid) = stat(pid)&.fetch(START_TICKS)&.to_i

      # @param pid [Integer]
      # @return [Float, nil] seconds since the process was forked; nil when it has ended
      def age_seconds(pid)
        ticks = start_ticks(pid)
        ticks && (::Process.clock_gettime(::Process::CLOCK_BOOTTIME) - ticks.fdiv(TICKS_PER_SECOND))
      end

      # @param pid [Integer]
      # @return [Integer, nil] the parent's number; nil when the process has ended
      def parent(pid) = stat(pid)&.fetch(PARENT)&.to_i

      # @param pid [Integer]
      # @return [String, nil] the state's letter, "Z" for a process that has ended and not been waited for
      def state(pid) = thread_state(LivingThread.of(pid))

      # @param thread [Integer] a thread, or a process, whose main thread is asked
      # @return [String, nil] the state's letter, "Z" for a main thread that has ended; nil when there is no such thread
      def thread_state(thread) = stat(thread)&.fetch(STATE)

      def stat(pid)
        text = File.read("/proc/#{pid}/stat")
        text.byteslice((text.rindex(")") + 2)..).split
      rescue *GONE_OR_FORBIDDEN
        nil
      end
      private_class_method :stat
    end
  end
end
