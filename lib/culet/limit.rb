# frozen_string_literal: true

require_relative "agent"
return if Culet::Native.another_copy?(__FILE__, "culet/limit")

require_relative "runtime/limit/preset"
require_relative "runtime/limit/settings"
require_relative "model/limit/source"
require_relative "runtime/limit/history"
require_relative "runtime/limit/steps"
require_relative "runtime/limit/boundary"
require_relative "runtime/limit/escalation"
require_relative "runtime/limit/monitor"

module Culet
  # `require "culet/limit"` keeps this process, and the processes that it forks, below the memory limit: that of the
  # control group, RLIMIT_AS, or the value of CULET_LIMIT (auto, 512M, 85%, off). Without a limit nothing changes.
  #
  # Near the limit, free memory goes back to the kernel and Ruby collects garbage earlier. If the use still rises, these
  # steps follow, each with a line in the log: trim, callbacks, collection, restart at a boundary. Only servers restart
  # (Puma, Sidekiq and others, or `restarts_by`); culet never ends another program.
  module Limit
    class << self
      # Starts keeping the limit, or changes the limit.
      #
      # @param limit [Symbol, String] :auto, a size ("512M"), or a part of the kernel's limit ("85%")
      # @return [Boolean] whether there is a limit to keep
      # @raise [ArgumentError] for another value
      # @raise [Culet::Error] without the native extension
      def start(limit = :auto)
        settings = Settings.new(limit)
        raise ArgumentError, settings.problem if settings.problem
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        begin_with(settings)
      end

      # @return [void]
      def stop
        monitor&.stop
        @monitor = nil
      end

      # Registers a block that frees memory. A thread of culet calls the block near the limit, after a trim.
      #
      # @param event [Symbol] :pressure
      # @return [void]
      # @raise [ArgumentError] for another event, or without a block
      def on(event, &block)
        raise ArgumentError, "#{event.inspect} is not :pressure" unless event == :pressure
        raise ArgumentError, "no block given" unless block

        callbacks << block
        nil
      end

      # Runs a pending collection. Programs without a supported server call this method between two requests or jobs.
      #
      # @return [Boolean] true if the program should end here, because no other step has kept the limit; only after
      #   `restarts_by` without a block
      def each_boundary
        boundary.pass
        ends?
      end

      # Sets the way in which this process restarts at its limit, after all other steps.
      #
      # @param interval [Numeric] minimum seconds between two restarts; default: `restart_interval`
      # @yield ends the process, or one of its workers, gracefully; returns a detail for the log, or :nothing if
      #   no worker can restart. Without a block, `each_boundary` returns true.
      # @return [void]
      def restarts_by(interval: restart_interval, &block)
        require_relative "runtime/limit/restart"
        @restart = Steps::Restart.new(block || method(:end_at_boundary), critical: Escalation::CRITICAL,
                                                                         settle: Monitor::SETTLE, interval: interval)
        monitor&.rebuild
        nil
      end

      # @return [Numeric] minimum seconds between two restarts
      def restart_interval = @restart_interval ||= 60

      # @param seconds [Numeric] to be set before the server starts
      def restart_interval=(seconds)
        raise ArgumentError, "#{seconds.inspect} is not a number of seconds" unless
          seconds.is_a?(Numeric) && seconds.real? && seconds >= 0

        @restart_interval = seconds
      end

      # @return [Hash{String => Object}] the document of `culet limit --json`: "limit_bytes", "source", "used_bytes",
      #   "headroom_bytes" (nil without a limit), "steps" (each with "at", "step", "freed_bytes") and "native" (counters
      #   of the native thread)
      def status
        return monitor.status if monitor

        Source.usage(@source&.bytes, @source&.description || "none", nil).merge("steps" => [])
      end

      # @api private
      # @return [Boundary]
      def boundary = @boundary ||= Boundary.new

      # @api private
      # @return [RequestThrottle]
      def throttle
        @throttle ||= begin
          require_relative "runtime/limit/request_throttle" # a program alone has none
          RequestThrottle.new(limit: -> { monitor&.limit_bytes }, full: method(:full?),
                              ends: -> { @ends || ending == ::Process.pid })
        end
      end

      # For servers without a master that chooses the worker to restart.
      #
      # @api private
      # @param seconds [Numeric]
      # @return [Boolean] true if this process may restart: no process with the same limit has restarted for `seconds`
      def claim_restart(seconds) = claim((seconds * 1000).to_i)

      # Makes `each_boundary` return true.
      #
      # @api private
      # @return [String]
      def end_at_boundary
        @ends = true
        "this process ends at its next boundary"
      end

      # @api private
      # @return [Boolean] whether this process ends at a boundary
      def ends? = @ends == true

      # @api private
      # @param pid [Integer] the process that a restart ends, this one or a worker; forked processes can read it
      def ending=(pid)
        self.ending_process = pid
      end

      # @api private
      # @return [Array<Proc>]
      def callbacks = @callbacks ||= []

      # @api private
      # @return [Steps::Restart, nil]
      attr_reader :restart

      # Sets the step that reduces the threads near the limit.
      #
      # @api private
      # @param step [Steps::Threads]
      def threads=(step)
        @threads = step
        monitor&.rebuild
      end

      # @api private
      # @return [Steps::Threads, nil]
      attr_reader :threads

      # @api private
      # @return [Proc] writes a line of the log
      def log = @log ||= ->(line) { warn(line) }

      # Starts as CULET_LIMIT says.
      #
      # @api private
      # @return [Array<String>] warnings, a sentence each
      def begin(settings)
        return [settings.problem] if settings.problem
        return [] if settings.off?
        return ["the memory limit is not kept: #{Native.missing_reason("culet.so")}"] unless Culet.native?

        begin_with(settings)
        @source&.problems.to_a
      rescue SystemCallError, Error => e
        ["the memory limit is not kept: #{e.message}"]
      end

      # Called in the parent before and after a fork.
      #
      # @api private
      def forking
        note_fork
        monitor&.wake if cluster
      end

      # Starts the threads again in a forked child.
      #
      # @api private
      def forked
        @boundary = @throttle = @ends = nil
        @restart = @cluster = @threads = nil # they belong to the process that was told so
        @monitor = @monitor&.forked
      rescue SystemCallError, ThreadError, Error => e
        @monitor = nil
        warn("culet: the memory limit is not kept in process #{::Process.pid}: #{e.message}")
      end

      # Sets the workers that share the limit with this process.
      #
      # @api private
      def cluster=(cluster)
        @cluster = cluster
        @clustered = true
        monitor&.rebuild
      end

      # @api private
      # @return [Cluster, nil] nil in the workers too
      attr_reader :cluster

      # @api private
      # @return [Boolean] whether this is a cluster's parent or one of its workers
      def clustered? = @clustered == true

      # @api private
      # @return [Boolean] whether a limit is kept
      def active? = !monitor.nil?

      private

      attr_reader :monitor

      def begin_with(settings)
        monitor&.stop
        @monitor = nil
        return false if settings.off?

        @source = Source.new(settings)
        unless @source.bytes
          log.call("culet: there is no memory limit to keep: no control group with a limit, and no RLIMIT_AS")
          return false
        end
        ::Process.singleton_class.prepend(Forks)
        @monitor = Monitor.new(settings, @source).start
        true
      end
    end

    # Starts the threads again in forked children.
    #
    # @api private
    module Forks
      # @return [Integer]
      def _fork
        Limit.forking
        pid = super
        Limit.forked if pid.zero?
        pid
      ensure
        Limit.forking unless pid&.zero?
      end

      # @return [Integer]
      def daemon(...) = super.tap { Limit.forked }
    end
    private_constant :Forks
  end

  Limit.begin(Limit::Settings.new(ENV.fetch("CULET_LIMIT") { Limit.preset || "auto" })).each { |sentence| Native.warn(sentence) }
end
