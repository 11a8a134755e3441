# frozen_string_literal: true

require "culet/tools/compare"

module Sigterm
  # One cluster, from its start to its end by SIGTERM right after requests.
  class Start
    START_SECONDS = 120
    REQUESTS = 12
    CONFIGURATION = File.expand_path("puma.rb", __dir__)
    LIBRARY = File.expand_path("../../lib", __dir__)

    # @param plugin [Boolean] whether it has culet's plugin
    # @param allocator [Culet::Allocators::Choice]
    # @param timeout [Integer, nil] Puma's worker_shutdown_timeout; nil: its own default
    # @param grace [Numeric] seconds
    # @param patience [Numeric] seconds after which it is killed
    def initialize(plugin:, allocator:, timeout:, grace:, patience:)
      @plugin = plugin
      @allocator = allocator
      @timeout = timeout
      @grace = grace
      @patience = patience
    end

    # @return [Symbol] :in_time within the grace, :late within the patience, or :never
    # @raise [Culet::Error] when it does not start
    def call
      @port = Culet::Compare::LoadTarget.free_port
      @child = Culet::Benchmark::Child.new(command: ["puma", "-q", "-C", CONFIGURATION], environment: environment)
      Bench.await_server(@child, START_SECONDS) { target.status == 200 }
      Array.new(REQUESTS) { Thread.new { target.status } }.each(&:join)
      Process.kill("TERM", @child.pid)
      return :in_time if @child.wait(@grace)

      @child.wait(@patience - @grace) ? :late : :never
    ensure
      @child&.stop
    end

    private

    def target = Culet::Compare::LoadTarget.local(@port)

    def environment
      base = ENV.to_h
      base.merge(@allocator.environment(base, isolated: true),
                 "RUBYLIB" => LIBRARY, "PORT" => @port.to_s, "MEASURED_PLUGIN" => @plugin ? "1" : "0",
                 "MEASURED_TIMEOUT" => @timeout&.to_s, "WEB_CONCURRENCY" => nil, "CULET_TRIM" => nil).compact
    end
  end
end
