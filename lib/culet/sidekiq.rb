# frozen_string_literal: true

require_relative "native"
return if Culet::Native.another_copy?(__FILE__, "culet/sidekiq")

require "sidekiq"
require_relative "runtime/sidekiq/quiet_periods"

module Culet
  # `require "culet/sidekiq"` in an initializer, or in the file of -r: a Sidekiq server returns free memory after major
  # garbage collections (culet/auto, configured by CULET_TRIM), and collects and trims once in each quiet period
  # (Sidekiq 6.5 and later). With CULET_BLACKBOX, jobs have labels. With CULET_LIMIT, or if culet/limit is loaded first,
  # the server keeps its memory limit (see Limit::Sidekiq). With CULET_METRICS, the server serves metrics on that port.
  # Processes that only push jobs are unchanged.
  module Sidekiq
    # @param config [Sidekiq::Config] of a server process
    # @return [void]
    def self.install(config)
      require_relative "auto"
      label_jobs(config)
      keep_limit(config)
      serve_metrics
      return unless Culet.native? && Culet.trim_stats[:active]

      periods = QuietPeriods.new
      return warn_without_heartbeat unless listen(config, periods)

      config.server_middleware { |chain| chain.prepend(Middleware, periods) }
    end

    def self.label_jobs(config)
      return unless defined?(BlackBox.running?) && BlackBox.running?

      config.server_middleware { |chain| chain.prepend(Profile::Sidekiq) }
    end

    # @return [Boolean] whether this Sidekiq has the event :beat
    def self.listen(config, periods)
      config.on(:beat) { periods.beat }
      true
    rescue ArgumentError
      false
    end

    def self.keep_limit(config)
      require_relative "limit" if ENV.fetch("CULET_LIMIT", "off") != "off"
      return unless defined?(Limit::Monitor) && Limit.active?

      require_relative "runtime/limit/sidekiq"
      Limit::Sidekiq.install(config)
    end

    def self.serve_metrics
      return if ENV.fetch("CULET_METRICS", "").empty?

      require_relative "metrics"
      Metrics.start
    end

    def self.warn_without_heartbeat
      warn("culet: free memory is returned after garbage collections, but not in quiet periods: " \
           "these need Sidekiq 6.5, and this is #{::Sidekiq::VERSION}")
    end
    private_class_method :label_jobs, :listen, :keep_limit, :serve_metrics, :warn_without_heartbeat
  end
end

Sidekiq.configure_server { |config| Culet::Sidekiq.install(config) }
