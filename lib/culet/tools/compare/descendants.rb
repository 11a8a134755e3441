# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/processes"

module Culet
  module Compare
    # The processes that one run started: the first one, and everything that comes
    # from it. Each is known by its number and its start time, so that a number
    # that the kernel gives to another process later is never touched.
    #
    # A process is found by three ways: as a child of a known one; by the process
    # group; by a mark in its environment, which also finds what has left its
    # parent and its group (a daemon).
    class Descendants
      # Carries the mark. The name is no setting of the allocator.
      MARK = "CULET_COMPARE_RUN"
      PATIENCE_SECONDS = 5.0
      # A zombie, and a process that is just being removed.
      ENDED = %w[Z X].freeze
      private_constant :PATIENCE_SECONDS, :ENDED

      attr_reader :root

      # @param root [Integer] number of the first process, the leader of its process group
      # @param mark [String] the value of MARK in its environment
      def initialize(root:, mark:)
        @root = root
        @mark = mark
        @known = {}
        @trees = {}
        learn(root)
      end

      # Looks for new processes below the known ones.
      #
      # @return [Array<Integer>] those that live now, the first process first
      def refresh
        alive.each do |pid|
          (@trees[pid] ||= Processes::Tree.new(pid)).pids.each { |found| learn(found) unless @known.key?(found) }
        end
        alive
      end

      # @return [Array<Integer>] the known processes that have not ended
      def alive = @known.keys.select { |pid| alive?(pid) }

      # Ends every process of the run that is still there, by SIGKILL, and waits until none is left. Does not
      # collect the first process's exit status.
      #
      # @return [Float] CPU seconds of those that nobody in the run had waited for
      # @raise [Culet::Error] when one does not end within some seconds
      def kill
        seconds = 0.0
        deadline = now + PATIENCE_SECONDS
        until (left = survivors).empty?
          seconds += left.sum { |pid| cpu_once(pid) }
          left.each { |pid| signal("KILL", pid) }
          raise Error, "the processes #{left.join(", ")} could not be ended" if now > deadline

          sleep(0.005)
        end
        seconds
      end

      # @param name [String] signal sent to the process group, which the first process leads
      def signal_group(name)
        Process.kill(name, -root) if alive?(root)
      rescue Errno::ESRCH
        nil # it ended between the look and the signal
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def learn(pid)
        _state, start = state_and_start(pid)
        @known[pid] = start if start
      end

      def alive?(pid)
        state, start = state_and_start(pid)
        start == @known[pid] && !ENDED.include?(state)
      end

      # Fields 3 and 22 of proc(5), in one read: this is done for every process at every sample.
      def state_and_start(pid)
        text = File.read("/proc/#{pid}/stat")
        text.byteslice((text.rindex(")") + 2)..).split.values_at(0, 19)
      rescue *Processes::GONE_OR_FORBIDDEN
        nil
      end

      # All of /proc is read, which costs some milliseconds: this is for the end of a run only.
      def survivors
        refresh
        Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).each do |pid|
          learn(pid) if !@known.key?(pid) && marked?(pid)
        end
        alive
      end

      def marked?(pid)
        File.binread("/proc/#{pid}/environ").split("\0").include?("#{MARK}=#{@mark}")
      rescue SystemCallError
        false # it has ended, or is another user's and thus not ours
      end

      def cpu_once(pid)
        @counted ||= {}
        return 0.0 if @counted[pid] || pid == root

        @counted[pid] = true
        Processes::Cpu.seconds(pid) || 0.0
      end

      # The start time was compared just before. Between the two steps the number cannot be given anew to
      # another process in practice: the kernel hands numbers out in a circle.
      def signal(name, pid)
        Process.kill(name, pid) if alive?(pid)
      rescue Errno::ESRCH
        nil
      end
    end
  end
end
