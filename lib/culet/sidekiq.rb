# frozen_string_literal: true

require "sidekiq"
require_relative "runtime/sidekiq/quiet_periods"

module Culet
  # `require "culet/sidekiq"`, where Sidekiq's server process reads it (an initializer, or the file of -r): memory goes
  # back to the kernel after major garbage collections (culet/auto, with its settings in CULET_TRIM), and once in each
  # quiet period everything that the last jobs left. Other processes that require it, a web server for one, are left as
  # they are. For Sidekiq 6.5 and later, whose heartbeat can be listened to; earlier ones get the first half.
  module Sidekiq
    # @param config [Sidekiq::Config] of a server process
    def self.install(config)
      require_relative "auto"
      return unless Culet.native? && Culet.trim_stats[:active]

      periods = QuietPeriods.new
      return tell_no_heartbeat unless listen(config, periods)

      config.server_middleware { |chain| chain.prepend(QuietPeriods::Middleware, periods) }
    end

    # @return [Boolean] whether this Sidekiq has the event
    def self.listen(config, periods)
      config.on(:beat) { periods.beat }
      true
    rescue ArgumentError
      false
    end

    def self.tell_no_heartbeat
      warn("culet: memory is given back after garbage collections, but not in quiet periods: Sidekiq " \
           "#{::Sidekiq::VERSION} tells no heartbeat; Sidekiq 6.5 and later do")
    end
    private_class_method :listen, :tell_no_heartbeat
  end
end

Sidekiq.configure_server { |config| Culet::Sidekiq.install(config) }
