# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "description"
require_relative "events"
require_relative "limits"
require_relative "member"
require_relative "tree"

module Culet
  # The memory of process trees as it changes, for `culet top` and `culet live`.
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
      # Of those that have never answered.
      SILENT = 16
      # They are waited for together.
      PAUSE = 0.002
      # Seconds of processor time for smaps_rollup, in the mean of some moments: one reading may take longer.
      BUDGET = 0.0005
      private_constant :WAIT, :AGENTS, :SILENT, :PAUSE, :BUDGET

      # @param roots [Array<Integer>] process numbers; their descendants are followed too
      def initialize(roots)
        @tree = Tree.new(roots)
        @limits = Limits.new(roots)
        @rollups = Processes::Rollups.new
        @events = Events.new
        @members = {}
        @descriptions = {}.compare_by_identity
        @waiting = {} # by socket: figures whose answer is due
        @allowance = BUDGET
        @boot_time = ::Process.clock_gettime(::Process::CLOCK_REALTIME) - ::Process.clock_gettime(::Process::CLOCK_BOOTTIME)
      end

      # @return [Hash{String => Object}, nil] the moment; nil when all processes have ended
      def call
        began = Clock.now
        at = Time.now.to_f.round(3)
        gone = follow
        return if @members.empty?

        ask
        processes = describe
        total = total(processes)
        @limits.follow(@members.each_value.select(&:limit?).map(&:pid))
        { "at" => at, "seconds" => (Clock.now - began).round(6), "processes" => processes, "total" => total,
          "limit" => @limits.current(total["pss_bytes"]),
          "events" => @events.call(at, @members.values, gone: gone, steps: @limits.take_steps) }
      end

      # @return [void]
      def close
        @limits.close
        @members.each_value(&:close)
      end

      private

      # @return [Array<Member>] those that have ended
      def follow
        gone = @members.values.reject(&:refresh)
        gone.each do |member|
          @members.delete(member.pid)
          @descriptions.delete(member)
          member.close
        end
        pids = @tree.pids(@members.keys)
        (pids - @members.keys).each { |pid| Member.find(pid)&.then { |member| @members[pid] = member } }
        @members = pids.filter_map { |pid| @members[pid] }.to_h { |member| [member.pid, member] }
        gone
      end

      def ask
        @waiting.reject! { |_, figures| figures.receive }
        silent, known = @members.each_value.select(&:question?).partition { |member| member.figures.last.nil? }
        [[silent, SILENT], [known, AGENTS]].each do |members, count|
          members.min_by(count) { |member| member.figures.asked_at }.each do |member|
            socket = member.ask
            @waiting[socket] = member.figures if socket
          end
        end
        wait if @waiting.each_value.any? { |figures| figures.last.nil? }
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
        known = @members.each_value.filter_map(&:copied)
        copied = known.empty? ? 0.0 : known.sum / known.size
        @members.each_value.map do |member|
          description = @descriptions[member] ||= Description.new(member, @boot_time)
          description.call(rollups[member.pid], copied)
        end
      end

      # Readings that took longer are made up for by later moments.
      def read_rollups
        starts = @members.transform_values { |member| member.stat.start_ticks }
        rollups = @rollups.call(starts, seconds: @allowance) { |pid| @members[pid].change }
        @allowance = [@allowance - @rollups.spent + BUDGET, BUDGET].min
        rollups
      end

      def total(processes)
        Description::SUMS.to_h do |name|
          known = processes.filter_map { |process| process[name] }
          [name, known.empty? ? nil : known.sum]
        end
      end
    end
  end
end
