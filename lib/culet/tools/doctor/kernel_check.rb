# frozen_string_literal: true

require "etc"
require_relative "finding"

module Culet
  class Doctor
    # Settings of the kernel: page size, transparent huge pages, ptrace scope, overcommit.
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

        note("page size", "#{text}; a jemalloc built for smaller pages does not start",
             "Use culet, which reads the page size at start.")
      end

      def huge_pages
        mode = KernelFile.huge_pages
        return unknown("huge pages", "transparent huge pages", "#{THP} cannot be read") unless mode
        return ok("huge pages", "the kernel has no transparent huge pages") if mode == "none"
        return ok("huge pages", "transparent huge pages: #{mode}") unless mode == "always"
        if target.status["THP_enabled"] == "0"
          return ok("huge pages", "transparent huge pages: always, but off for this process")
        end

        note("huge pages", "transparent huge pages: always, also for this process; one resident byte can cost 2 MiB",
             "Run `echo madvise > #{THP}` as root, so that only programs that request them get them.")
      end

      # Yama, Documentation/admin-guide/LSM/Yama.rst of the kernel.
      def ptrace_scope
        topic = "ptrace scope"
        case content(PTRACE_SCOPE) || ("0" if KernelFile.absent?(PTRACE_SCOPE, folder: SETTINGS_FOLDER))
        when "0" then ok(topic, "0: a user may read the memory of own processes")
        when "1"
          note(topic, "1: only root and its ancestors may read the memory of a process",
               "Run culet as root, or start the program with culet.")
        when "2" then note(topic, "2: only root may read the memory of a process", "Run culet as root.")
        when "3"
          bad(topic, "3: nobody may read the memory of a process until the next boot",
              "Set kernel.yama.ptrace_scope to 1 or 2 in /etc/sysctl.d and reboot.")
        else
          unknown(topic, "ptrace scope", "#{PTRACE_SCOPE} cannot be read", "Run culet as root.")
        end
      end

      def overcommit
        mode = content(OVERCOMMIT)
        words = { "0" => "heuristic", "1" => "always" }[mode]
        return ok("overcommit", "memory overcommit: #{words}") if words
        return unknown("overcommit", "memory overcommit", "#{OVERCOMMIT} cannot be read") unless mode == "2"

        note("overcommit", "memory overcommit: off; reserved address space counts too",
             "Watch Committed_AS against CommitLimit in /proc/meminfo; `sysctl vm.overcommit_memory=0` is the default.")
      end
    end
  end
end
