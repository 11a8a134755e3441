# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Metrics
    # What the kernel knows of processes, from /proc: nothing waits, and no process is stopped.
    class Readings
      # The kernel walks all pages of a process for what it shares, some 13 ms per GB. A scrape spends no more than this
      # many seconds per process on that: it reads the oldest figures again, and at least one.
      BUDGET = 0.0005
      # Fields of /proc/PID/stat (proc(5)) after the name, the state first.
      FIELDS = { user: 11, system: 12, threads: 17, start: 19, virtual: 20, resident: 21 }.freeze
      # Fields of smaps_rollup.
      SHARING = %w[shared_clean_bytes shared_dirty_bytes private_clean_bytes private_dirty_bytes anonymous_bytes].freeze
      private_constant :BUDGET, :FIELDS, :SHARING

      def initialize
        @sharing = {} # by PID: time of the reading, start of the process, figures
      end

      # @param pids [Array<Integer>]
      # @return [Hash{Integer => Array}] samples of those that live
      def call(pids)
        fields = pids.to_h { |pid| [pid, stat(pid)] }.compact
        @sharing.select! { |pid, (_, start, _)| fields.dig(pid, FIELDS[:start]) == start }
        refresh(fields)
        fields.to_h { |pid, values| [pid, basic(values) + sharing(pid)] }
      end

      private

      def stat(pid)
        text = File.read("/proc/#{pid}/stat")
        fields = text.byteslice((text.rindex(")") + 2)..).split
        fields unless fields.first == "Z"
      rescue *Processes::GONE_OR_FORBIDDEN
        nil
      end

      def basic(values)
        user, system, threads, start, virtual, resident = values.values_at(*FIELDS.values).map(&:to_i)
        ticks = Processes::Cpu::TICKS_PER_SECOND
        [["process_resident_memory_bytes", {}, resident * Processes::Memory::PAGE_BYTES],
         ["process_virtual_memory_bytes", {}, virtual],
         ["process_cpu_seconds_total", {}, (user + system).fdiv(ticks)],
         ["process_threads", {}, threads],
         ["process_start_time_seconds", {}, (boot_time + start.fdiv(ticks)).round(2)]]
      end

      # Seconds since 1970. Asked once, so that a start does not change with the clock.
      def boot_time
        @boot_time ||= ::Process.clock_gettime(::Process::CLOCK_REALTIME) - ::Process.clock_gettime(::Process::CLOCK_BOOTTIME)
      end

      def refresh(fields)
        deadline = now + (BUDGET * fields.size)
        fields.keys.sort_by { |pid| @sharing[pid]&.first || 0 }.each do |pid|
          rollup = Processes::Memory.rollup(pid)
          @sharing[pid] = [now, fields[pid][FIELDS[:start]], rollup] unless rollup.empty?
          break if now > deadline
        end
      end

      def sharing(pid)
        time, _, figures = @sharing[pid]
        return [] unless figures

        clean, dirty, own_clean, own_dirty, anonymous = figures.fetch_values(*SHARING)
        [["culet_process_proportional_memory_bytes", {}, figures.fetch("pss_bytes")],
         ["culet_process_private_memory_bytes", {}, own_clean + own_dirty],
         ["culet_process_shared_memory_bytes", {}, clean + dirty],
         ["culet_process_copy_on_write_shared_ratio", {},
          anonymous.zero? ? 0.0 : [dirty.fdiv(anonymous), 1.0].min.round(4)],
         ["culet_process_sharing_age_seconds", {}, (now - time).round(3)]]
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
