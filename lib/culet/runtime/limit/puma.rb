# frozen_string_literal: true

require_relative "../../text/size"
require_relative "request_throttle"
require_relative "threads"
require_relative "worker"

module Culet
  module Limit
    # The forked workers of a parent. The extension adds up their memory (ext/culet/limit/cluster.h).
    class Cluster
      # @yield [Array<Integer>] the workers
      def initialize(&workers)
        @workers = workers
      end

      # Passes the list of workers to the extension.
      def list
        forks = Limit.send(:forks)
        Limit.send(:workers, pids, forks)
      end

      # @return [Array<Integer>] the workers
      def pids = @workers.call

      # @param except [Array<Integer>] workers to leave out
      # @return [Array(Integer, Integer), nil] the worker with the most private memory, and this memory in bytes
      def largest(except: []) = (pids - except).map { |pid| [pid, Worker.private_bytes(pid)] }.max_by(&:last)
    end

    # Keeps the memory limit of Puma. Near the limit each process first uses fewer threads (Puma 8, whose thread pool
    # can be resized). Then a single process ends gracefully, and its supervisor starts it again. In a cluster the
    # master ends the worker with the most private memory by SIGTERM, one worker at a time, and starts a new one; the
    # worker finishes its requests while the other workers accept new ones.
    class Puma
      # The thread pool of a process.
      class Pool
        # @param control [Puma::ServerPluginControl]
        def initialize(control)
          @control = control
        end

        # @return [Integer]
        def min_threads = @control.min_threads

        # @return [Integer]
        def max_threads = @control.max_threads

        # Puma applies a new size to threads that it starts, so this method also ends idle threads beyond the size.
        #
        # @param min [Integer]
        # @param max [Integer]
        def resize(min, max)
          @control.update_thread_pool_min_max(min: min, max: max)
          pool = threads or return

          (pool.spawned - pool.trim_requested - max).times { pool.trim(true) }
        end

        private

        # Puma has no accessor for the thread pool.
        def threads
          pool = @control.instance_variable_get(:@server)&.instance_variable_get(:@thread_pool)
          pool if %i[spawned trim_requested trim].all? { |name| pool.respond_to?(name) }
        end
      end

      # Called in a process that serves requests, at the start of each thread.
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

      # The launcher has no accessor for the workers.
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

      # A worker may take long to end. Further workers can end meanwhile, except for the last one that serves.
      #
      # @return [Array<Integer>] the workers that must not be ended now
      def ending(cluster)
        pids = cluster.pids
        @ending &= pids
        @ending.any? && pids.size - @ending.size < 2 ? pids : @ending
      end
    end
  end
end
