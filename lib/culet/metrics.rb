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
  # Culet::Metrics.start, which collects the figures of this process and of those it forks later, and serves them over
  # HTTP with an address: CULET_METRICS=9394, or `start(9394)`. `plugin :culet` in Puma and culet/sidekiq call it.
  #
  # `use Culet::Metrics::Rack` serves the same at /metrics of the application. `Culet::Metrics.instrument` makes the
  # figures of this process instruments of OpenTelemetry, prometheus-client and Yabeda; Culet::Metrics::StatsD sends
  # them.
  module Metrics
    { Rack: "rack", OpenTelemetry: "opentelemetry", PrometheusClient: "prometheus_client", Yabeda: "yabeda",
      StatsD: "statsd" }.each do |constant, file|
      autoload constant, File.expand_path("runtime/metrics/#{file}", __dir__)
    end

    CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
    # A constant that a library defines => the constant above that makes its instruments.
    LIBRARIES = { "OpenTelemetry::SDK::Metrics" => :OpenTelemetry, "Prometheus::Client" => :PrometheusClient,
                  "Yabeda" => :Yabeda }.freeze
    private_constant :LIBRARIES

    class << self
      # Sites of the profile that are reported, the largest first, if culet/profile runs. Each costs two series per
      # process, and their report some 10 ms per minute.
      #
      # @return [Integer] 0 by default: none
      def sites = @sites ||= 0

      # @param number [Integer] 0 to 100
      def sites=(number)
        unless number.is_a?(Integer) && number.between?(0, 100)
          raise ArgumentError, "#{number.inspect} is not a number of sites from 0 to 100"
        end

        @sites = number
      end

      # Collects the figures of this process, and of those it forks from now on. In a forked process, whose parent
      # collects already, it does nothing. Further calls replace the address.
      #
      # @param address [String, Integer, nil] where to serve them: a port of 127.0.0.1, "HOST:PORT" or "unix:/PATH";
      #   nil: nowhere. Default: CULET_METRICS
      # @param token [String, nil] that requests must bear. Default: CULET_METRICS_TOKEN
      # @param hosts [Array<String>] names by which clients without a token may call this machine, beside addresses and
      #   names without a dot. Default: CULET_METRICS_HOSTS
      # @param workers [#call, nil] returns the label `worker` by process number
      # @return [Boolean] whether they are collected and, with an address, served; otherwise a warning says why not
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

      # Serves and collects nothing any more. Forked processes go on alone.
      #
      # @return [void]
      def stop
        [@server, @collector, @forked].each { |part| part&.stop }
        @server = @collector = @forked = nil
      end

      # The figures of this process and of those that it forked since `start`; in a forked process the same, from its
      # parent. A process that does not report within half a second is shown with its last report. Nothing is stopped,
      # and no request waits.
      #
      # @return [String] in the format of Prometheus
      # @raise [Culet::Error] when the parent does not answer within five seconds, or descriptors are lacking
      def text = (@collector || @forked)&.text || Exposition.text(own)

      # The figures of this process alone.
      #
      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples = own.flat_map(&:last)

      # Makes the figures of this process instruments of the libraries that are loaded. With yabeda-prometheus, Yabeda
      # exports them to prometheus-client.
      #
      # @return [Array<Symbol>] of :OpenTelemetry, :PrometheusClient and :Yabeda those that got them
      def instrument
        found = LIBRARIES.filter_map { |library, name| name if Object.const_defined?(library) }
        found.delete(:PrometheusClient) if Object.const_defined?("Yabeda::Prometheus")
        found.each { |name| const_get(name).install }
      end

      # In a forked child: the parent's threads are gone.
      #
      # @api private
      def forked
        @report = @readings = nil
        @server&.abandon
        parent = @collector || @forked
        @server = @collector = nil
        @forked = parent&.join
      end

      # The process goes on as its own child, without threads.
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

    # Tells forked processes who collects their figures.
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
