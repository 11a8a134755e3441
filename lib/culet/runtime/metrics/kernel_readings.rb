# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"

module Culet
  module Metrics
    # Metrics of processes from /proc, which neither wait for the processes nor stop them.
    class KernelReadings
      # CPU seconds per process that a scrape spends on smaps_rollup.
      BUDGET = 0.0005
      private_constant :BUDGET

      # @param root [String] the folder that has /proc
      def initialize(root: "/")
        @root = root
        @rollups = Processes::Rollups.new(root: root)
      end

      # @return [Hash{Integer => Array}] samples of the living processes
      def call(pids)
        stats = pids.to_h { |pid| [pid, stat(pid)] }.compact
        rollups = @rollups.call(stats.transform_values(&:start_ticks), seconds: BUDGET * stats.size)
        stats.to_h { |pid, reading| [pid, basic(reading) + sharing(rollups[pid])] }
      end

      private

      def stat(pid)
        file = Processes::Stat.new(pid, root: @root)
        file.read
      rescue *Processes::GONE_OR_FORBIDDEN
        nil
      ensure
        file&.close
      end

      def basic(reading)
        [["process_resident_memory_bytes", {}, reading.resident_bytes],
         ["process_virtual_memory_bytes", {}, reading.virtual_bytes],
         ["process_cpu_seconds_total", {}, reading.cpu_seconds],
         ["process_threads", {}, reading.threads],
         ["process_start_time_seconds", {}, reading.started_at]]
      end

      def sharing(rollup)
        return [] unless rollup

        figures = rollup.figures
        dirty, anonymous = figures.fetch_values("shared_dirty_bytes", "anonymous_bytes")
        [["culet_process_proportional_memory_bytes", {}, figures.fetch("pss_bytes")],
         ["culet_process_private_memory_bytes", {}, figures.fetch("private_bytes")],
         ["culet_process_shared_memory_bytes", {}, figures.fetch("shared_bytes")],
         ["culet_process_copy_on_write_shared_ratio", {},
          anonymous.zero? ? 0.0 : [dirty.fdiv(anonymous), 1.0].min.round(4)],
         ["culet_process_sharing_age_seconds", {}, (Clock.now - rollup.time).round(3)]]
      end
    end
  end
end
