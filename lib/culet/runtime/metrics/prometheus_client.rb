# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Metrics
    # The metrics of this process in a registry of prometheus-client, whose exporter shows them with the application's
    # own.
    module PrometheusClient
      # Seconds for which one collection serves all metrics.
      FRESH = 0.5
      private_constant :FRESH

      # A metric as Prometheus::Client's formats read it.
      Metric = Struct.new(:name, :type, :docstring, :source) do
        # @return [Hash{Hash => Numeric}] value by labels
        def values = source.call(name)

        # @return [Numeric, nil] the value with these labels
        def get(labels: {}) = values[labels]
      end

      class << self
        # @param registry [Prometheus::Client::Registry]
        def install(registry: ::Prometheus::Client.registry)
          FAMILIES.each_value do |family|
            next if registry.exist?(family.name.to_sym) # installed already, or of another library

            type = family.type == :info ? :gauge : family.type
            registry.register(Metric.new(family.name.to_sym, type, family.help, method(:values)))
          end
          nil
        end

        private

        def values(name)
          now = Clock.now
          collect(now) unless @pid == ::Process.pid && now < @until
          @samples.select { |sample, _, _| sample == name.to_s }
                  .to_h { |_, labels, value| [labels.transform_keys(&:to_sym), value] }
        end

        def collect(now)
          @samples = Metrics.samples
          @until = now + FRESH
          @pid = ::Process.pid
        end
      end
    end
  end
end
