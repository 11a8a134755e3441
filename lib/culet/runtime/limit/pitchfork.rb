# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Limit
    # A Pitchfork that keeps its memory limit: the worker with the most private memory ends after a request, and the
    # monitor starts another one.
    module Pitchfork
      # A worker whose memory is this part of the largest may end: the largest may have no request for a long time.
      SHARE = 0.9
      private_constant :SHARE

      class << self
        # In a worker, when it begins.
        #
        # @return [void]
        def begin_worker = Limit.restarts_by(interval: 0) { restart }

        # In a worker, after a request.
        #
        # @return [void]
        def after_request
          exit if Limit.each_boundary
          Limit.gate.pass
        end

        private

        # Each worker decides for itself, and one of them at a time.
        def restart
          own = private_bytes(::Process.pid)
          return :nothing if workers.any? { |pid| private_bytes(pid) * SHARE > own }
          return :nothing unless Limit.claim_restart(Limit.restart_interval)

          Limit.end_at_boundary
          "worker #{::Process.pid} with #{History.size(own)} of private memory ends after its next request"
        end

        # Molds and workers of the same monitor.
        def workers
          parent = ::Process.ppid
          Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select { |pid| Processes::Cpu.parent(pid) == parent }
        end

        def private_bytes(pid)
          Processes::Memory.rollup(pid).values_at("private_dirty_bytes", "private_clean_bytes").compact.sum
        end
      end
    end
  end
end
