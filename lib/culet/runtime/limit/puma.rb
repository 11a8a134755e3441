# frozen_string_literal: true

require_relative "../../text/size"
require_relative "request_throttle"
require_relative "threads"
require_relative "worker"

module Culet
  module Limit
    # The workers that a parent has forked. Their memory is added up by the extension (ext/culet/limit/cluster.h).
    class Cluster
      # @yield [Array<Integer>] the workers
      def initialize(&workers)
        @workers = workers
      end

      # Tells the extension which workers there are. A process that is forked meanwhile is in the next list.
      def list
        forks = Limit.send(:forks)
        Limit.send(:workers, pids, forks)
      end

      # @return [Array<Integer>] the workers
      def pids = @workers.call

      # @param except [Array<Integer>] workers that are left out
      # @return [Array(Integer, Integer), nil] the worker with the most private memory, and how much that is
      def largest(except: []) = (pids - except).map { |pid| [pid, Worker.private_bytes(pid)] }.max_by(&:last)
    end

    # A Puma that keeps its memory limit. A single process ends gracefully, so that its supervisor starts it again. In a
    # cluster the master ends the worker with the most private memory by SIGTERM and starts another one: the worker
    # finishes its requests, and the other workers accept new ones. One worker at a time. Before that, each process
    # serves fewer requests at a time, if its thread pool can be resized (Puma 8).
    class Puma
      # The thread pool of a process.
      class Pool
        # @param control [Puma::ServerPluginControl]
        def initialize(control)
          @control = control
        end

        # @return [Integer] the least number of threads
        def min_threads = @control.min_threads

        # @return [Integer] the most
        def max_threads = @control.max_threads

        # Puma applies a new size to threads that it starts; those beyond it are asked to end when they are idle.
        #
        # @param min [Integer]
        # @param max [Integer]
        def resize(min, max)
          @control.update_thread_pool_min_max(min: min, max: max)
          pool = threads or return

          (pool.spawned - pool.trim_requested - max).times { pool.trim(true) }
        end

        private

        # Puma does not expose it.
        def threads
          pool = @control.instance_variable_get(:@server)&.instance_variable_get(:@thread_pool)
          pool if %i[spawned trim_requested trim].all? { |name| pool.respond_to?(name) }
        end
      end

      # In the process that serves requests, when one of its threads starts.
      #
      # @param control [Puma::ServerPluginControl, nil] nil before Puma 8
      def self.thread_starts(control)
        return unless control.respond_to?(:update_thread_pool_min_max) && Limit.active? && Limit.threads.nil?

        Limit.threads = Steps::Threads.new(Pool.new(control), Limit.log)
      end

      # @param launcher [Puma::Launcher]
      def self.install(launcher) = new(launcher).install

      def initialize(launcher)
        @launcher = launcher
        @ending = []
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

        pid, bytes = cluster.largest(except: ending(cluster))
        return :nothing unless pid

        Limit.ending = pid
        @ending << pid
        ::Process.kill(:TERM, pid)
        "worker #{pid} with #{Text::Size.human(bytes)} of private memory ends when its requests have ended"
      rescue Errno::ESRCH
        :nothing # it has ended by itself
      end

      # A worker that was told to end may take long: another one can follow it, but the last that serves stays.
      #
      # @return [Array<Integer>] the workers that are not to end now
      def ending(cluster)
        pids = cluster.pids
        @ending &= pids
        @ending.any? && pids.size - @ending.size < 2 ? pids : @ending
      end
    end
  end
end
