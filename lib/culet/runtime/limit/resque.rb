# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # Keeps the memory limit of Resque: of the workers with the same parent the largest finishes its job and ends
    # (QUIT), and its process manager starts it again. Memory of a forked job is freed at the end of the job, without a
    # restart.
    module Resque
      # The titles of processes that Resque sets.
      TITLE = /\Aresque-\d/
      private_constant :TITLE

      class << self
        # Called at the start of a worker.
        def begin_worker
          Limit.restarts_by(interval: 0) { restart }
          ::Resque.before_fork do
            Limit.throttle.pass
            Limit.each_boundary
          end
        end

        private

        # Compares resident memory, because pages that a worker shares with the process of its job are not private. The
        # job may have ended since the usage was read.
        def restart
          own = resident(::Process.pid)
          return :nothing if Worker.children_of(::Process.pid).any? { |pid| holds?(pid, own) } || !critical?

          Worker.restart("ends after its job", others: others, bytes: method(:resident)) do
            ::Process.kill(:QUIT, ::Process.pid)
          end
        end

        # The memory of an ending process no longer counts as resident, but may not be free yet.
        def holds?(job, own)
          bytes = Worker.private_bytes(job)
          bytes > own || (bytes.zero? && Processes::Cpu.state(job) != "Z")
        end

        def critical?
          used, limit = Limit.status.values_at("used_bytes", "limit_bytes")
          used && used >= Escalation::CRITICAL * limit
        end

        def others = Worker.siblings.select { |pid| TITLE.match?(Processes::Identity.new(pid).command_line) }

        def resident(pid) = Processes::Memory.rss_bytes(pid) || 0
      end
    end
  end
end
