# frozen_string_literal: true

require_relative "../errors"
require_relative "clock"
require_relative "processes"

module Culet
  # The process tree of one run. A process is identified by number and start time, so that a reused number is never
  # mistaken for it. Descendants are found as children, and by a mark in their environment, which daemons keep.
  class Descendants
    # The environment variable with the mark; culet's malloc ignores it.
    MARK = "CULET_COMPARE_RUN"
    PATIENCE_SECONDS = 5.0
    private_constant :PATIENCE_SECONDS

    attr_reader :root

    # @param root [Integer] number of the first process, the leader of its group
    # @param mark [String] the value of MARK in its environment
    def initialize(root:, mark:)
      @root = root
      @mark = mark
      @known = {}
      @trees = {}
      remember(root)
    end

    # Finds new descendants.
    #
    # @return [Array<Integer>] running processes, the root first
    def refresh
      alive.each do |pid|
        (@trees[pid] ||= Processes::Tree.new(pid)).pids.each { |found| remember(found) unless @known.key?(found) }
      end
      alive
    end

    # @return [Array<Integer>] known processes that still run
    def alive = @known.keys.select { |pid| alive?(pid) }

    # Kills every process of the run and waits until none is left. The root is not waited for (wait(2)).
    #
    # @return [Float] CPU seconds of the killed processes
    # @raise [Culet::Error] when one does not end within seconds
    def kill
      seconds = 0.0
      deadline = Clock.now + PATIENCE_SECONDS
      until (left = survivors).empty?
        seconds += left.sum { |pid| cpu_once(pid) }
        left.each { |pid| signal("KILL", pid) }
        raise Error, "cannot kill the processes #{left.join(", ")}" if Clock.now > deadline

        sleep(0.005)
      end
      seconds
    end

    # @param name [String] signal to the process group
    def signal_group(name)
      Process.kill(name, -root) if alive?(root)
    rescue Errno::ESRCH
      nil # it has just ended
    end

    private

    def remember(pid)
      start = Processes::Cpu.start_ticks(pid)
      @known[pid] = start if start
    end

    # In one read: called for every process at every sample.
    def alive?(pid)
      fields = Processes::Cpu.stat(pid)
      fields && fields[:start].to_i == @known[pid] && !Processes::Cpu::ENDED.include?(fields[:state])
    end

    # Reads all of /proc, which takes milliseconds: only at the end of a run.
    def survivors
      refresh
      Processes::Search.pids.each { |pid| remember(pid) if !@known.key?(pid) && marked?(pid) }
      alive
    end

    def marked?(pid)
      File.binread("/proc/#{pid}/environ").split("\0").include?("#{MARK}=#{@mark}")
    rescue SystemCallError
      false # it has ended, or belongs to another user
    end

    def cpu_once(pid)
      @counted ||= {}
      return 0.0 if @counted[pid] || pid == root

      @counted[pid] = true
      Processes::Cpu.seconds(pid) || 0.0
    end

    # The kernel reuses numbers in a circle, so the number does not change its process between check and signal.
    def signal(name, pid)
      Process.kill(name, pid) if alive?(pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
