# frozen_string_literal: true

require "culet"
require "puma/dsl"
require "puma/plugin"

# `plugin :culet` in Puma's configuration, for Puma 5 and later:
#
# - Memory goes back to the kernel after major garbage collections, in a single process and in every worker
#   (culet/auto, with its settings in CULET_TRIM).
# - The process that preloaded the application tidies up once before it forks the workers (Culet.warmup), after all
#   other before_fork hooks; with `fork_worker` so does the worker that is forked anew.
# - With `Culet::Warmup.requests = ["/", "/issues"]` below it, that process asks the application for these pages first,
#   before all other before_fork hooks, so that these close what was opened for it.
# - A trim that only waits for its minimum interval is made when the worker has no request (out_of_band).
#
# It has no `config` method: Puma drops the first option of the user's file for a plugin that has one (Hash#shift in
# DSL#_offer_plugins, Puma 5 to 8). Hooks are added when Puma starts its plugins, before the application is loaded.
Puma::Plugin.create do
  # @param launcher [Puma::Launcher]
  def start(launcher)
    require "culet/auto"
    options = launcher.options
    hooks = Puma::DSL.new(options.file_options, launcher.config)
    cluster = options[:workers].to_i.positive?
    warm_up(launcher, hooks, options) if cluster
    warn("culet: no page is asked for in advance: Culet::Warmup.requests needs workers and preload_app!") if
      Culet::Warmup.requests.any? && !(cluster && options[:preload_app])
    trim_between_requests(launcher, options)
  end

  private

  def warm_up(launcher, hooks, options)
    if options[:preload_app]
      hooks.before_fork { Culet.warmup(requests: []) }
      serve_requests_first(launcher)
    end
    hooks.public_send(hooks.respond_to?(:before_refork) ? :before_refork : :on_refork) { Culet.warmup(requests: []) } if options[:fork_worker]
  end

  # The hooks of a level are a list, whose last one this makes the first. The options that were given in code and on the
  # command line come before those of the file.
  def serve_requests_first(launcher)
    options = launcher.options
    level = options.user_options.key?(:before_fork) ? options.user_options : options.file_options
    Puma::DSL.new(level, launcher.config).before_fork { Culet::Warmup.serve_requests(app: application(launcher)) }
    level[:before_fork].unshift(level[:before_fork].pop)
  end

  # The very application that the workers will serve: Puma's launcher does not show it, and Puma::Configuration#app would
  # load another one.
  def application(launcher)
    runner = launcher.instance_variable_get(:@runner)
    runner.app if runner.respond_to?(:app)
  end

  # Puma runs these hooks of one level of its options alone, the first that has any.
  def trim_between_requests(launcher, options)
    return unless Culet.native? && Culet.trim_stats[:active]

    level = options.user_options.key?(:out_of_band) ? options.user_options : options.file_options
    hooks = Puma::DSL.new(level, launcher.config)
    hooks.out_of_band { Culet.trim if Culet::Trim.waits? }
  end
end
