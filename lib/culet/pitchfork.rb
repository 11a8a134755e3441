# frozen_string_literal: true

require_relative "../culet"

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
  module Pitchfork
    # Adds to the hooks that the file has set above. A Pitchfork hook has one block, so a hook set below would replace
    # this.
    #
    # @param configurator [Pitchfork::Configurator] `self` in the configuration file
    # @return [void]
    def self.configure(configurator)
      warm_up_molds(configurator)
      trim_between_requests(configurator) if Culet.native?
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

    # @return [Proc, nil]
    def self.block_of(configurator, hook) = configurator[hook].then { |block| block if block.respond_to?(:call) }
    private_class_method :warm_up_molds, :trim_between_requests, :block_of
  end
end
