# frozen_string_literal: true

require "culet"
return if Culet::Native.another_copy?(__FILE__, "puma/plugin/culet")

require "puma/dsl"
require "puma/plugin"

# `plugin :culet` in Puma's configuration, for Puma 5 and later:
#
# - Every worker, or the single process, returns free memory after major garbage collections (culet/auto, configured by
#   CULET_TRIM).
# - With preload_app!, the parent calls Culet.warmup before it forks the workers, after all other before_fork hooks;
#   with `fork_worker`, worker 0 does so before each refork.
# - With `Culet::Warmup.requests = ["/", "/issues"]` below it, the parent requests these pages before all other
#   before_fork hooks, so that these close the connections.
# - A trim that waits for its minimum interval runs when the worker has no request (out_of_band).
# - With CULET_BLACKBOX, requests have labels (Culet::Profile::Rack).
# - With CULET_PROFILE, culet/profile is loaded before the application, so that the profile has its lines.
# - With `require "culet/limit"` in the same file, or CULET_LIMIT in the environment, the server keeps its memory limit:
#   see Culet::Limit::Puma.
# - With CULET_METRICS, or `require "culet/metrics"` in the same file, the metrics of all processes are collected, and
#   served on the port that CULET_METRICS says.
#
# The plugin has no `config` method, because Puma drops the first option of the user's file for a plugin that has one
# (Hash#shift in DSL#_offer_plugins, Puma 5 to 8). Hooks are added when Puma starts its plugins, before it loads the
# application.
Puma::Plugin.create do
  # @param launcher [Puma::Launcher]
  def start(launcher)
    require "culet/auto"
    require "culet/profile" unless ["", "0"].include?(ENV.fetch("CULET_PROFILE", ""))
    options = launcher.options
    hooks = Puma::DSL.new(options.file_options, launcher.config)
    cluster = options[:workers].to_i.positive?
    warm_up(launcher, hooks, options) if cluster
    warn("culet: no requests are sent: Culet::Warmup.requests needs workers and preload_app!") if
      Culet::Warmup.requests.any? && !(cluster && options[:preload_app])
    trim_between_requests(launcher, options)
    label_requests(launcher.config)
    keep_limit(launcher, options)
    collect_metrics(launcher)
  end

  private

  # Puma asks its configuration for the application once, or once in each worker.
  def label_requests(configuration)
    return unless defined?(Culet::BlackBox.running?) && Culet::BlackBox.running?

    wrap_application(configuration, Culet::Profile::Rack)
  end

  def wrap_application(configuration, middleware)
    configuration.extend(Module.new { define_method(:app) { middleware.new(super()) } })
  end

  def warm_up(launcher, hooks, options)
    if options[:preload_app]
      hooks.before_fork { Culet.warmup(requests: []) }
      serve_requests_first(launcher)
    end
    return unless options[:fork_worker]

    before_refork = hooks.respond_to?(:before_refork) ? :before_refork : :on_refork
    hooks.public_send(before_refork) { Culet.warmup(requests: []) }
  end

  # Moves the last hook of a level to the front. Options given in code and on the command line precede those of the
  # file.
  def serve_requests_first(launcher)
    options = launcher.options
    level = options.user_options.key?(:before_fork) ? options.user_options : options.file_options
    Puma::DSL.new(level, launcher.config).before_fork { Culet::Warmup.serve_requests(app: application(launcher)) }
    level[:before_fork].unshift(level[:before_fork].pop)
  end

  # The application that the workers serve. The launcher does not expose it, and Puma::Configuration#app would load
  # another.
  def application(launcher)
    runner = launcher.instance_variable_get(:@runner)
    runner.app if runner.respond_to?(:app)
  end

  def trim_between_requests(launcher, options)
    return unless Culet.native? && Culet.trim_stats[:active]

    between_requests(launcher, options) { Culet.trim if Culet::Trim.waits? }
  end

  def keep_limit(launcher, options)
    require "culet/limit" if ENV.fetch("CULET_LIMIT", "off") != "off"
    return unless defined?(Culet::Limit::Monitor) && Culet::Limit.active?

    require "culet/runtime/limit/puma"
    Culet::Limit::Puma.install(launcher)
    wrap_application(launcher.config, Culet::Limit::RequestThrottle::Rack)
    between_requests(launcher, options) { Culet::Limit.each_boundary }
    hooks = first_level(launcher, options, :before_thread_start)
    hooks.before_thread_start { |control = nil| Culet::Limit::Puma.thread_starts(control) } if
      hooks.respond_to?(:before_thread_start)
  end

  # Puma runs some hooks only of the first level of its options that has any.
  def first_level(launcher, options, hook)
    Puma::DSL.new(options.user_options.key?(hook) ? options.user_options : options.file_options, launcher.config)
  end

  def between_requests(launcher, options, &block) = first_level(launcher, options, :out_of_band).out_of_band(&block)

  # The launcher does not expose its workers, and Puma.stats resets figures that others may read.
  def collect_metrics(launcher)
    require "culet/metrics" unless ENV.fetch("CULET_METRICS", "").empty?
    return unless defined?(Culet::Metrics)

    Culet::Metrics.start(workers: lambda do
      runner = launcher.instance_variable_get(:@runner)
      Array(runner&.instance_variable_get(:@workers)).to_h { |worker| [worker.pid, worker.index] }
    end)
  end
end
