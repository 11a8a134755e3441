# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/pitchfork")

module Culet
  # Support for Pitchfork. At the end of its configuration file:
  #
  #     require "culet/pitchfork"
  #     Culet::Pitchfork.configure(self)
  #
  # - Every mold calls Culet.warmup before it forks workers.
  # - With `Culet::Warmup.requests = ["/", "/issues"]` above it, the first mold requests these pages before its own hook
  #   runs; later molds have served real requests.
  # - Molds and workers return free memory after major garbage collections (culet/auto, configured by CULET_TRIM). The
  #   monitor, which does not load the application, is unchanged.
  # - A trim that waits for its minimum interval runs when a request is complete.
  # - With `require "culet/limit"` above it, or CULET_LIMIT in the environment, the workers keep the memory limit: see
  #   Culet::Limit::Pitchfork.
  module Pitchfork
    # Adds to the hooks that the file has set above. A Pitchfork hook has one block, so a hook set below would replace
    # this.
    #
    # @param configurator [Pitchfork::Configurator] `self` in the configuration file
    # @return [void]
    def self.configure(configurator)
      warm_up_molds(configurator)
      trim_between_requests(configurator) if Culet.native?
      keep_limit(configurator)
    end

    def self.warm_up_molds(configurator)
      earlier = block_of(configurator, :after_mold_fork)
      configurator.after_mold_fork do |server, mold|
        Warmup.serve_requests(app: server.app) if mold.generation.zero?
        earlier&.call(server, mold)
        require_relative "auto"
        Culet.warmup(requests: [])
      end
    end

    def self.trim_between_requests(configurator)
      earlier = block_of(configurator, :after_request_complete)
      configurator.after_request_complete do |server, worker, environment|
        earlier&.call(server, worker, environment)
        Culet.trim if Trim.waits?
      end
    end

    def self.keep_limit(configurator)
      require_relative "limit" if ENV.fetch("CULET_LIMIT", "off") != "off"
      return unless defined?(Limit::Monitor) && Limit.active?

      require_relative "runtime/limit/pitchfork"
      earlier_fork = block_of(configurator, :after_worker_fork)
      configurator.after_worker_fork do |server, worker|
        earlier_fork&.call(server, worker)
        Limit::Pitchfork.begin_worker
      end
      earlier = block_of(configurator, :after_request_complete)
      configurator.after_request_complete do |server, worker, environment|
        earlier&.call(server, worker, environment)
        Limit::Pitchfork.after_request
      end
    end

    # @return [Proc, nil]
    def self.block_of(configurator, hook) = configurator[hook].then { |block| block if block.respond_to?(:call) }
    private_class_method :warm_up_molds, :trim_between_requests, :keep_limit, :block_of
  end
end
