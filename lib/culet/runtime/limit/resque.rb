# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # A Resque worker that keeps its memory limit: at the limit it finishes its job and ends (QUIT), so that its process
    # manager starts it again. What a job in a process of its own has allocated goes with that process. Of the workers
    # with the same parent, the largest ends.
    module Resque
      # A worker writes into its title what it does.
      TITLE = /\Aresque-\d/
      private_constant :TITLE

      class << self
        # In a worker, when it begins.
        def begin_worker
          Limit.restarts_by(interval: 0) { restart }
          ::Resque.before_fork do
            Limit.throttle.pass
            Limit.each_boundary
          end
        end

        private

        # Pages that a worker shares with the process of its job are not private, so resident memory is compared. A job
        # may have ended since the usage was read.
        def restart
          own = resident(::Process.pid)
          return :nothing if Worker.children_of(::Process.pid).any? { |pid| holds?(pid, own) } || !critical?

          Worker.restart("ends after its job", others: others, bytes: method(:resident)) do
            ::Process.kill(:QUIT, ::Process.pid)
          end
        end

        # The memory of a process that ends is not its own any more, and not free yet.
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
