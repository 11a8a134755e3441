# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "increments"

module Culet
  module Metrics
    # The metrics of this process as instruments of the OpenTelemetry SDK (opentelemetry-metrics-sdk), named by its
    # semantic conventions where they have a name.
    #
    # The SDK gives an observable instrument one value, without attributes, and adds the values of an observable counter
    # up. So the instruments are synchronous, and an observable gauge, which the SDK asks at each collection, records
    # them.
    module OpenTelemetry
      # Asked first, so that the others are of the same collection.
      TRIGGER = "culet.collection.time"
      CREATE = { gauge: :create_gauge, info: :create_gauge, counter: :create_counter,
                 up_down_counter: :create_up_down_counter }.freeze
      private_constant :TRIGGER, :CREATE

      class << self
        # @param provider [OpenTelemetry::SDK::Metrics::MeterProvider]
        def install(provider: ::OpenTelemetry.meter_provider)
          meter = provider.meter("culet", version: VERSION)
          instruments = {}
          increments = Increments.new
          meter.create_observable_gauge(TRIGGER, unit: "s", description: "Time to collect culet's figures.",
                                                 callback: -> { record(instruments, increments) })
          FAMILIES.each_value do |family|
            create = CREATE.fetch(family.otel_kind)
            instruments[family.name] = meter.public_send(create, family.otel_name, unit: family.otel_unit,
                                                                                   description: family.help)
          end
          nil
        end

        private

        # @return [Float] seconds
        def record(instruments, increments)
          start = Clock.now
          Metrics.samples.each do |name, labels, value|
            instrument = instruments.fetch(name)
            attributes = labels.transform_keys { |label| "culet.#{label}" }
            case FAMILIES.fetch(name).otel_kind
            when :counter then instrument.add(increments.total(name, labels, value), attributes: attributes)
            when :up_down_counter then instrument.add(increments.level(name, labels, value), attributes: attributes)
            else instrument.record(value, attributes: attributes)
            end
          end
          Clock.now - start
        end
      end
    end
  end
end
