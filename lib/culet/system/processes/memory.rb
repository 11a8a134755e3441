# frozen_string_literal: true

require "etc"

module Culet
  module Processes
    # Memory figures of a process, from /proc (see proc(5)).
    module Memory
      PAGE_BYTES = Etc.sysconf(Etc::SC_PAGESIZE)
      PARTS = { "private_bytes" => %w[private_clean_bytes private_dirty_bytes],
                "shared_bytes" => %w[shared_clean_bytes shared_dirty_bytes] }.freeze
      private_constant :PARTS

      module_function

      # Resident bytes. Reads statm, the cheapest source: a few kernel counters, no walk of the page tables.
      # The kernel batches these counters per thread, so they may lag by some dozen pages.
      #
      # @return [Integer, nil] nil when the process has ended
      def rss_bytes(pid)
        resident, = statm(File.read("/proc/#{pid}/statm"))
        # Its main thread may have ended before the others.
        resident, = statm(File.read("/proc/#{LivingThread.of(pid)}/statm")) if resident&.zero?
        resident
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      # @param text [String] of statm
      # @return [Array(Integer, Integer)] resident bytes, and those of them in files and shared memory
      def statm(text)
        _, resident, files = text.split(" ", 4)
        [resident.to_i * PAGE_BYTES, files.to_i * PAGE_BYTES]
      end

      # The highest resident figure so far, in bytes, as the kernel counts it (VmHWM).
      #
      # @return [Integer, nil] nil when the process has ended, also while it is a zombie
      def peak_rss_bytes(pid) = status_bytes(pid, "VmHWM")

      # Proportional set size: shared pages count by the share of each process. The kernel walks the page tables
      # under the lock that the process's own mmap calls need, so this disturbs a large process: ask seldom.
      #
      # @return [Integer, nil] nil when the process has ended or may not be read
      def pss_bytes(pid) = rollup(pid)["pss_bytes"]

      # All figures of smaps_rollup; it costs what `pss_bytes` costs.
      #
      # @param root [String] the folder that has /proc
      # @return [Hash{String => Integer}] e.g. "rss_bytes", "pss_bytes", "private_dirty_bytes", "shared_clean_bytes",
      #   and "private_bytes" and "shared_bytes", clean and dirty. Empty when the process has ended or may not be read
      def rollup(pid, root: "/")
        text = File.read(File.join(root, "proc/#{LivingThread.of(pid)}/smaps_rollup"))
        found = text.scan(/^(\w+): +(\d+) kB$/).to_h { |name, kilobytes| [key(name), kilobytes.to_i * 1024] }
        PARTS.each { |sum, parts| found[sum] = found.values_at(*parts).sum } if found.any?
        found
      rescue *GONE_OR_FORBIDDEN
        {}
      end

      def status_bytes(pid, field)
        kilobytes = File.binread("/proc/#{LivingThread.of(pid)}/status")[/^#{field}:\s+(\d+) kB/, 1]
        kilobytes && (kilobytes.to_i * 1024)
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      # The kernel has some twenty names.
      def key(name) = (@keys ||= {})[name] ||= "#{name.gsub(/([a-z])([A-Z])/, '\1_\2').downcase}_bytes".freeze

      private_class_method :status_bytes, :key
    end
  end
end
