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
  # `require "culet/limit"` keeps this process, and those it forks, below its memory limit: that of the control group or
  # RLIMIT_AS, or what CULET_LIMIT says (auto, 512M, 85%, off). Without a limit it changes nothing.
  #
  # Near the limit, free memory is returned, and Ruby collects garbage earlier. If that does not suffice, these steps
  # follow, each logged with its figures: trim, callbacks, collection, restart of the process at a boundary. Only
  # servers restart (Puma, Sidekiq, or `restarts_by`); a program alone is never ended.
  module Limit
    class << self
      # Starts, or changes the limit.
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

      # Registers a block that frees memory: called near the limit if a trim did not suffice, in a thread of its own.
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

      # To be called between two requests or jobs by programs that are not on a supported server: a collection that
      # waits is done here.
      #
      # @return [Boolean] whether the process is to end here, because it is at its limit and nothing else helps; true
      #   only if `restarts_by` was called without a block
      def each_boundary
        boundary.pass
        ends?
      end

      # Says how this process restarts at its limit, when no other step suffices.
      #
      # @param interval [Numeric] least seconds between two restarts; default: `restart_interval`
      # @yield ends the process, or one of its workers, gracefully; returns a detail for the log, or :nothing if
      #   nothing can be restarted now. Without a block, `each_boundary` returns true.
      # @return [void]
      def restarts_by(interval: restart_interval, &block)
        require_relative "runtime/limit/restart"
        @restart = Steps::Restart.new(block || method(:end_at_boundary), critical: Escalation::CRITICAL,
                                                                         settle: Monitor::SETTLE, interval: interval)
        monitor&.rebuild
        nil
      end

      # @return [Numeric] least seconds between two restarts
      def restart_interval = @restart_interval ||= 60

      # @param seconds [Numeric] to be set before the server starts
      def restart_interval=(seconds)
        raise ArgumentError, "#{seconds.inspect} is not a number of seconds" unless
          seconds.is_a?(Numeric) && seconds.real? && seconds >= 0

        @restart_interval = seconds
      end

      # @return [Hash{String => Object}] what `culet limit --json` prints: "limit_bytes", "source", "used_bytes",
      #   "headroom_bytes" (nil without a limit) and "steps", a list of "at", "step", "freed_bytes"; and "native", what
      #   the native thread did
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

      # For servers whose workers decide for themselves.
      #
      # @api private
      # @return [Boolean] whether no process that shares this one's limit has restarted for so long; then this one may
      def claim_restart(seconds) = claim((seconds * 1000).to_i)

      # Each_boundary returns true from now on.
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

      # The process that a restart ends: itself, or a worker. Those forked from this one see it.
      #
      # @api private
      def ending=(pid)
        self.ending_process = pid
      end

      # @api private
      # @return [Array<Proc>]
      def callbacks = @callbacks ||= []

      # @api private
      # @return [Steps::Restart, nil]
      attr_reader :restart

      # How this process serves fewer requests at a time near its limit.
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
      # @return [Proc] gets each line of the log
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

      # Before and after a fork, in the parent.
      #
      # @api private
      def forking
        note_fork
        monitor&.wake if cluster
      end

      # In a forked child: the parent's threads are gone.
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

      # The workers of this process, which the limit is for too.
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
