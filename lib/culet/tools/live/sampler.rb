# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "events"
require_relative "levels"
require_relative "limits"
require_relative "member"
require_relative "tree"

module Culet
  # The memory of process trees as it changes, for `culet top` and `culet live`.
  module Live
    # Reads the memory of process trees again and again. No process is stopped or waited for. The kernel takes long to
    # find out what a process shares: that is read in turns, and in between the resident memory says by how much the
    # private memory has changed.
    #
    # A moment is a Hash for JSON:
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
      # Memory figures that add up.
      SUMS = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].freeze
      # How long the agents have for their answers, in seconds. Later ones count at the next moment.
      WAIT = 0.1
      # Agents that are asked at a moment: of larger trees those whose answers are the oldest.
      AGENTS = 16
      # They are waited for together.
      PAUSE = 0.002
      # Seconds of processor time for smaps_rollup.
      BUDGET = 0.001
      COUNTS = %w[minor_gcs major_gcs allocated_objects trims trim_returned_bytes].freeze
      private_constant :WAIT, :AGENTS, :PAUSE, :BUDGET, :COUNTS

      # @param roots [Array<Integer>] process numbers; their descendants are followed too
      def initialize(roots)
        @tree = Tree.new(roots)
        @limits = Limits.new(roots)
        @rollups = Processes::Rollups.new
        @events = Events.new
        @members = {}
        @boot_time = ::Process.clock_gettime(::Process::CLOCK_REALTIME) - ::Process.clock_gettime(::Process::CLOCK_BOOTTIME)
      end

      # @return [Hash{String => Object}, nil] the moment; nil when all processes have ended
      def call
        began = now
        at = Time.now.to_f.round(3)
        gone = follow
        return if @members.empty?

        ask
        processes = describe
        total = total(processes)
        @limits.follow(@members.each_value.select(&:limit?).map(&:pid))
        { "at" => at, "seconds" => (now - began).round(6), "processes" => processes, "total" => total,
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
          member.close
        end
        pids = @tree.pids(@members.keys)
        (pids - @members.keys).each { |pid| Member.find(pid)&.then { |member| @members[pid] = member } }
        @members = pids.filter_map { |pid| @members[pid] }.to_h { |member| [member.pid, member] }
        gone
      end

      def ask
        members = @members.each_value.min_by(AGENTS) { |member| member.figures.asked_at }
        waiting = members.to_h { |member| [member.figures.ask, member.figures] }
        waiting.delete(nil)
        deadline = now + WAIT
        sleep(PAUSE) if waiting.size > 1
        until waiting.empty?
          ready, = IO.select(waiting.keys, nil, nil, [deadline - now, 0].max)
          break unless ready

          ready.each { |socket| waiting.delete(socket) if waiting[socket].receive }
        end
      end

      def describe
        starts = @members.transform_values { |member| member.stat.start_ticks }
        rollups = @rollups.call(starts, seconds: BUDGET)
        @members.each_value.map do |member|
          memory = member.memory(rollups[member.pid])
          { **member.identity(@boot_time), **SUMS.to_h { |name| [name, memory[name]] },
            "cpu_seconds" => member.stat.cpu_seconds.round(2), "threads" => member.stat.threads,
            "figures" => own_figures(member, memory) }
        end
      end

      def own_figures(member, memory)
        found = member.figures.last or return
        live, slots = found.values_at("live_slots", "slots")
        { "levels" => Levels.call(memory, found), "malloc_used_bytes" => found["malloc_used_bytes"],
          "malloc_free_bytes" => found["malloc_free_bytes"], "live_slots" => live,
          "free_slots" => live && slots && [slots - live, 0].max, **found.slice(*COUNTS),
          "gc_per_minute" => member.collections_per_minute, "profile" => found["profile"] == 1 }
      end

      def total(processes)
        SUMS.to_h do |name|
          known = processes.filter_map { |process| process[name] }
          [name, known.empty? ? nil : known.sum]
        end
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
