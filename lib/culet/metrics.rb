# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/metrics")

require_relative "runtime/metrics/families"
require_relative "runtime/metrics/exposition"
require_relative "runtime/metrics/report"
require_relative "runtime/metrics/kernel_readings"
require_relative "runtime/metrics/group"
require_relative "runtime/metrics/collector"
require_relative "runtime/metrics/server"

module Culet
  # `require "culet/metrics"` makes the memory of this process available to monitoring systems. Nothing runs until
  # Culet::Metrics.start, which collects the metrics of this process and of the processes that it forks later. With an
  # address (CULET_METRICS=9394, or `start(9394)`) it also serves them over HTTP. `plugin :culet` in Puma and
  # culet/sidekiq call `start`.
  #
  # `use Culet::Metrics::Rack` serves the metrics at /metrics of the application. `Culet::Metrics.instrument` registers
  # the metrics of this process with OpenTelemetry, prometheus-client and Yabeda. Culet::Metrics::StatsD sends them.
  module Metrics
    { Rack: "rack", OpenTelemetry: "opentelemetry", PrometheusClient: "prometheus_client", Yabeda: "yabeda",
      StatsD: "statsd" }.each do |constant, file|
      autoload constant, File.expand_path("runtime/metrics/#{file}", __dir__)
    end

    CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
    # Constant of a library => constant of Metrics that makes the library's instruments.
    LIBRARIES = { "OpenTelemetry::SDK::Metrics" => :OpenTelemetry, "Prometheus::Client" => :PrometheusClient,
                  "Yabeda" => :Yabeda }.freeze
    private_constant :LIBRARIES

    class << self
      # The number of sites of the memory profile among the metrics, the largest first. Each site is two series per
      # process; the profile is read once a minute, in some 10 ms.
      #
      # @return [Integer] default: 0
      def sites = @sites ||= 0

      # @param number [Integer] 0 to 100
      def sites=(number)
        unless number.is_a?(Integer) && number.between?(0, 100)
          raise ArgumentError, "#{number.inspect} is not a number of sites from 0 to 100"
        end

        @sites = number
      end

      # Collects the metrics of this process and of the processes that it forks later. Does nothing in a forked process
      # whose parent collects. Further calls replace the address.
      #
      # @param address [String, Integer, nil] the address to serve: a port of 127.0.0.1, "HOST:PORT" or "unix:/PATH";
      #   nil: none. Default: CULET_METRICS
      # @param token [String, nil] the bearer token that requests must have. Default: CULET_METRICS_TOKEN
      # @param hosts [Array<String>] accepted names in the Host header of requests without a token, beside addresses
      #   and names without a dot. Default: CULET_METRICS_HOSTS
      # @param workers [#call, nil] returns the label `worker` for a process number
      # @return [Boolean] false, after a warning with the reason, if the metrics are not collected or not served
      def start(address = ENV.fetch("CULET_METRICS", nil), token: ENV.fetch("CULET_METRICS_TOKEN", nil),
                hosts: ENV.fetch("CULET_METRICS_HOSTS", "").scrub.split(/[\s,]+/), workers: nil)
        return false if @forked

        ::Process.singleton_class.prepend(Forks)
        @workers = workers
        forked unless @collector # fills its caches, see Collector#rehearse
        @collector ||= Collector.new(worker_names: -> { @workers&.call || {} }).start
        listen(address, token: token, hosts: hosts)
        true
      rescue ArgumentError, SystemCallError, SocketError, ThreadError => e
        warn("culet: metrics are not #{@collector ? "served" : "collected"}: #{e.message}")
        false
      end

      # Stops collecting and serving in this process, not in forked ones.
      #
      # @return [void]
      def stop
        [@server, @collector, @forked].each { |part| part&.stop }
        @server = @collector = @forked = nil
      end

      # The metrics of the process that called `start` and of its forked processes. For a process that does not report
      # within half a second, the text has the last report. No request waits meanwhile.
      #
      # @return [String] in the format of Prometheus
      # @raise [Culet::Error] when the parent does not answer within five seconds, or descriptors are lacking
      def text = (@collector || @forked)&.text || Exposition.text(own)

      # The metrics of this process alone.
      #
      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples = own.flat_map(&:last)

      # Registers the metrics of this process with the loaded libraries of OpenTelemetry, prometheus-client and Yabeda.
      # With yabeda-prometheus, Yabeda exports them to prometheus-client.
      #
      # @return [Array<Symbol>] the libraries: :OpenTelemetry, :PrometheusClient, :Yabeda
      def instrument
        found = LIBRARIES.filter_map { |library, name| name if Object.const_defined?(library) }
        found.delete(:PrometheusClient) if Object.const_defined?("Yabeda::Prometheus")
        found.each { |name| const_get(name).install }
      end

      # Called in a forked child, which has no threads of its parent.
      #
      # @api private
      def forked
        @report = @readings = nil
        @server&.abandon
        parent = @collector || @forked
        @server = @collector = nil
        @forked = parent&.join
      end

      # Called after Process.daemon, which leaves a child without threads.
      #
      # @api private
      def daemonized
        @collector = @collector&.restart
        @forked = @forked&.join
        @server&.start
      end

      # @api private
      # @return [Report] of this process
      def report = @report ||= Report.new

      private

      def readings = @readings ||= KernelReadings.new

      # @return [Array<Array(Hash, Array)>] labels and samples
      def own
        pid = ::Process.pid
        [[{}, Group.samples], [{ "pid" => pid.to_s }, readings.call([pid]).fetch(pid, []) + report.samples]]
      end

      def listen(address, **access)
        @server&.stop
        @server = nil
        @server = Server.open(address, **access) unless address.to_s.empty?
      end
    end

    # Connects forked processes to the collector of their parent.
    #
    # @api private
    module Forks
      # @return [Integer]
      def _fork = super.tap { |pid| Metrics.forked if pid.zero? }

      # @return [Integer]
      def daemon(...) = super.tap { Metrics.daemonized }
    end
    private_constant :Forks
  end
end
