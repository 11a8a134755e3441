# frozen_string_literal: true

require "etc"
require_relative "finding"

module Culet
  class Doctor
    # What the kernel is set to: page size, transparent huge pages, who may read whose memory, overcommit.
    class KernelCheck < Check
      THP = KernelFile::HUGE_PAGES
      PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
      SETTINGS_FOLDER = "/proc/sys/kernel"
      OVERCOMMIT = "/proc/sys/vm/overcommit_memory"

      # @return [Array<Finding>]
      def findings = [page_size, huge_pages, ptrace_scope, overcommit]

      private

      def page_size
        bytes = Etc.sysconf(Etc::SC_PAGESIZE)
        text = "pages of #{bytes / 1024} KiB"
        return ok("page size", text) if bytes == 4096 || target.allocator != "jemalloc"

        note("page size", "#{text}; a jemalloc built for smaller pages than these does not start",
             "culet reads the page size when it starts.")
      end

      def huge_pages
        mode = KernelFile.huge_pages
        return unknown("huge pages", "whether transparent huge pages are on is", "#{THP} cannot be read") unless mode
        return ok("huge pages", "this kernel has no transparent huge pages") if mode == "none"
        return ok("huge pages", "transparent huge pages: #{mode}") unless mode == "always"
        return ok("huge pages", "transparent huge pages: always, and off for this process") if target.status["THP_enabled"] == "0"

        note("huge pages", "transparent huge pages: always, also for this process; one resident byte can then cost 2 MiB",
             "`echo madvise > #{THP}` as root leaves them to those who ask.")
      end

      # Yama, Documentation/admin-guide/LSM/Yama.rst of the kernel.
      def ptrace_scope
        topic = "ptrace scope"
        case content(PTRACE_SCOPE) || ("0" if KernelFile.absent?(PTRACE_SCOPE, folder: SETTINGS_FOLDER))
        when "0" then ok(topic, "a user may read the memory of the user's own processes")
        when "1"
          note(topic, "1: only root, or the process's ancestors, may read its memory",
               "Look as root, or start the program through culet.")
        when "2" then note(topic, "2: only root may read a process's memory", "Look as root.")
        when "3"
          bad(topic, "3: nobody may read a process's memory until the machine restarts",
              "Set kernel.yama.ptrace_scope to 1 or 2 in /etc/sysctl.d and restart the machine.")
        else
          unknown(topic, "who may read a process's memory is", "#{PTRACE_SCOPE} cannot be read", "Look as root.")
        end
      end

      def overcommit
        mode = content(OVERCOMMIT)
        words = { "0" => "heuristic", "1" => "always" }[mode]
        return ok("overcommit", "memory overcommit: #{words}") if words
        return unknown("overcommit", "memory overcommit is", "#{OVERCOMMIT} cannot be read") unless mode == "2"

        note("overcommit", "memory overcommit is off: address space that is only reserved counts, too",
             "Watch Committed_AS against CommitLimit in /proc/meminfo; `sysctl vm.overcommit_memory=0` is the default.")
      end
    end
  end
end
