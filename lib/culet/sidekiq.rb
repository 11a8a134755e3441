# frozen_string_literal: true

require "sidekiq"
require_relative "runtime/sidekiq/quiet_periods"

module Culet
  # `require "culet/sidekiq"` in an initializer, or in the file of -r: a Sidekiq server returns free memory after major
  # garbage collections (culet/auto, configured by CULET_TRIM), and collects and trims once in each quiet period. Other
  # processes that require it are unchanged. Quiet periods need Sidekiq 6.5 or later. With CULET_METRICS, the server
  # serves its metrics on that port.
  module Sidekiq
    # @param config [Sidekiq::Config] of a server process
    # @return [void]
    def self.install(config)
      require_relative "auto"
      serve_metrics
      return unless Culet.native? && Culet.trim_stats[:active]

      periods = QuietPeriods.new
      return warn_without_heartbeat unless listen(config, periods)

      config.server_middleware { |chain| chain.prepend(QuietPeriods::Middleware, periods) }
    end

    # @return [Boolean] whether this Sidekiq has the event :beat
    def self.listen(config, periods)
      config.on(:beat) { periods.beat }
      true
    rescue ArgumentError
      false
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
    private_class_method :listen, :serve_metrics, :warn_without_heartbeat
  end
end

Sidekiq.configure_server { |config| Culet::Sidekiq.install(config) }
