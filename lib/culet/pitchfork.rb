# frozen_string_literal: true

require_relative "../culet"

module Culet
  # For Pitchfork. The last line of its configuration file:
  #
  #     require "culet/pitchfork"
  #     Culet::Pitchfork.configure(self)
  #
  # - Every mold, the first and those that workers are promoted to, tidies up before it forks workers (Culet.warmup).
  # - With `Culet::Warmup.requests = ["/", "/issues"]` before it, the first mold asks the application for these pages first,
  #   before the file's own hook; later ones have served real requests.
  # - In molds and workers memory goes back to the kernel after major garbage collections (culet/auto, with its
  #   settings in CULET_TRIM). The monitor, which loads no application, is left as it is.
  # - A trim that only waits for its minimum interval is made when a request is complete.
  module Pitchfork
    # Adds to the hooks that the file has set so far, whose blocks run first. A hook has one block in Pitchfork, so that
    # one set later would take the place of this: hence the last line.
    #
    # @param configurator [Pitchfork::Configurator] `self` in the configuration file
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
