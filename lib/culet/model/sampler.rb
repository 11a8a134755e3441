# frozen_string_literal: true

require_relative "../system/clock"
require_relative "../system/processes"
require_relative "sampler/events"
require_relative "sampler/limits"
require_relative "sampler/watched_process"

module Culet
  module Live
    # Reads the memory of process trees again and again. No process is stopped or waited for. The kernel takes long to
    # find out what a process shares: that is read in turns, and in between its counters say by how much the private
    # memory has changed (Sharing).
    #
    # A moment is a Hash for JSON. What has not changed is the same object as in the moment before; nothing in it may be
    # changed:
    # - "at": seconds since 1970; "seconds": what reading it took
    # - "processes": a Hash each, roots first: "pid", "parent_pid", "start_ticks", "started_at", "title", "ruby";
    #   "rss_bytes", "pss_bytes", "private_bytes", "shared_bytes", "swap_bytes", "growth_bytes" (of the private bytes,
    #   since the first reading; nil where the process may not be read), "cpu_seconds", "threads"; "figures"
    # - "figures": of the process's agent, or nil: "levels", "malloc_used_bytes", "malloc_free_bytes", "live_slots",
    #   "free_slots", "minor_gcs", "major_gcs", "gc_per_minute", "allocated_objects", "trims", "trim_returned_bytes",
    #   "profile"
    # - "total": the sums of the memory figures
    # - "limit": of the first root, as of Limits#current
    # - "events": as of Events#call
    class Sampler
      # How long agents have for their first answers, in seconds. Later ones count at the next moment, as all further
      # answers do.
      WAIT = 0.1
      # Agents that are asked at a moment: of larger trees those whose answers are the oldest. Each costs its process
      # some 0.1 ms.
      AGENTS = 8
      # Agents that have never answered, and are asked at a moment.
      SILENT = 16
      # Pause in seconds, so that several answers are received together.
      PAUSE = 0.002
      # Seconds of processor time for smaps_rollup, in the mean of some moments: one reading may take longer.
      BUDGET = 0.0005
      private_constant :WAIT, :AGENTS, :SILENT, :PAUSE, :BUDGET

      # @param roots [Array<Integer>] process numbers; their descendants are followed too
      # @param root [String] the folder that has /proc and the mounted control groups
      def initialize(roots, root: "/")
        @root = root
        @tree = Processes::Tree.new(*roots)
        @limits = Limits.new(roots, root: root)
        @rollups = Processes::Rollups.new(root: root)
        @events = Events.new
        @processes = {}
        @waiting = {} # by socket: connections whose answer is due
        @allowance = BUDGET
      end

      # @return [Hash{String => Object}, nil] the moment; nil when all processes have ended
      def call
        began = Clock.now
        at = Time.now.to_f.round(3)
        gone = follow
        return if @processes.empty?

        ask
        processes = describe
        total = total(processes)
        @limits.follow(@processes.each_value.select(&:limit?).map(&:pid))
        { "at" => at, "seconds" => (Clock.now - began).round(6), "processes" => processes, "total" => total,
          "limit" => @limits.current(total["pss_bytes"]),
          "events" => @events.call(at, @processes.values, gone: gone, steps: @limits.take_steps) }
      end

      # @return [void]
      def close
        @limits.close
        @processes.each_value(&:close)
      end

      private

      # @return [Array<WatchedProcess>] those that have ended
      def follow
        gone = @processes.values.reject(&:refresh)
        gone.each { |process| @processes.delete(process.pid).close }
        pids = @tree.follow(@processes.keys)
        @processes = pids.filter_map { |pid| @processes[pid] || WatchedProcess.find(pid, root: @root) }
                         .to_h { |process| [process.pid, process] }
        gone
      end

      def ask
        @waiting.reject! { |_, agent| agent.receive }
        silent, known = @processes.each_value.select(&:question?).partition { |process| process.counters.nil? }
        [[silent, SILENT], [known, AGENTS]].each do |processes, count|
          processes.min_by(count) { |process| process.agent.asked_at }.each do |process|
            socket = process.ask
            @waiting[socket] = process.agent if socket
          end
        end
        wait if @waiting.each_value.any? { |agent| agent.last.nil? }
      end

      # For the first answers; others are read at the next moment.
      def wait
        deadline = Clock.now + WAIT
        sleep(PAUSE) if @waiting.size > 1
        until @waiting.empty?
          ready, = IO.select(@waiting.keys, nil, nil, [deadline - Clock.now, 0].max)
          break unless ready

          ready.each { |socket| @waiting.delete(socket) if @waiting[socket].receive }
        end
      end

      def describe
        rollups = read_rollups
        known = @processes.each_value.filter_map(&:copied)
        copied = known.empty? ? 0.0 : known.sum / known.size
        @processes.each_value.map { |process| process.describe(rollups[process.pid], copied) }
      end

      # Readings that took longer are made up for by later moments.
      def read_rollups
        starts = @processes.transform_values { |process| process.stat.start_ticks }
        rollups = @rollups.call(starts, seconds: @allowance) { |pid| @processes[pid].change }
        @allowance = [@allowance - @rollups.spent + BUDGET, BUDGET].min
        rollups
      end

      def total(processes)
        WatchedProcess::SUMS.to_h do |name|
          known = processes.filter_map { |process| process[name] }
          [name, known.empty? ? nil : known.sum]
        end
      end
    end
  end
end
