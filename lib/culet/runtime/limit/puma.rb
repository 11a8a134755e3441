# frozen_string_literal: true

require_relative "cluster"
require_relative "gate"

module Culet
  module Limit
    # A Puma that keeps its memory limit. A single process ends gracefully, so that its supervisor starts it again. In a
    # cluster the master ends the worker with the most private memory by SIGTERM and starts another one: the worker
    # finishes its requests, and the other workers accept new ones. One worker at a time.
    class Puma
      # @param launcher [Puma::Launcher]
      # @return [void]
      def self.install(launcher)
        new(launcher).install
      end

      # @param launcher [Puma::Launcher]
      def initialize(launcher)
        @launcher = launcher
      end

      # @return [void]
      def install
        if @launcher.options[:workers].to_i.positive?
          cluster = Cluster.new { workers.filter_map(&:pid) }
          Limit.cluster = cluster
          Limit.restarts_by { restart_one(cluster) }
        else
          Limit.restarts_by { stop }
        end
      end

      private

      # The launcher does not expose it.
      def workers
        runner = @launcher.instance_variable_get(:@runner)
        Array(runner&.instance_variable_get(:@workers))
      end

      def stop
        Limit.ending = ::Process.pid
        ::Process.kill(:TERM, ::Process.pid)
        "this process ends when its requests have ended"
      end

      def restart_one(cluster)
        return :nothing unless workers.size == @launcher.options[:workers].to_i && workers.all?(&:booted?)

        pid, bytes = cluster.largest
        return :nothing unless pid

        Limit.ending = pid
        ::Process.kill(:TERM, pid)
        "worker #{pid} with #{History.size(bytes)} of private memory ends when its requests have ended"
      rescue Errno::ESRCH
        :nothing # it has ended by itself
      end
    end
  end
end
