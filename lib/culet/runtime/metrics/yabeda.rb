# frozen_string_literal: true

require_relative "increments"

module Culet
  module Metrics
    # The metrics of this process as gauges and counters of Yabeda, which its adapters export.
    module Yabeda
      class << self
        # @return [void]
        def install
          return if @installed

          @installed = true
          increments = Increments.new
          define
          ::Yabeda.configure { collect { Culet::Metrics::Yabeda.send(:report, increments) } }
        end

        private

        # Yabeda needs the names of the labels.
        LABELS = { "culet_memory_level_bytes" => %i[level], "culet_malloc_memory_bytes" => %i[state],
                   "ruby_gc_heap_slots" => %i[state], "ruby_gc_collections_total" => %i[type],
                   "culet_profile_site_bytes" => %i[rank], "culet_profile_site_info" => %i[rank site class],
                   "culet_process_info" => %i[version ruby ruby_engine allocator],
                   "culet_memory_pressure_seconds_total" => %i[kind] }.freeze
        private_constant :LABELS

        def define
          ::Yabeda.configure do
            FAMILIES.each_value do |family|
              kind = family.type == :counter ? :counter : :gauge
              public_send(kind, family.name.to_sym, comment: family.help, tags: LABELS.fetch(family.name, []))
            end
          end
        end

        def report(increments)
          Metrics.samples.each do |name, labels, value|
            metric = ::Yabeda.metrics.fetch(name)
            tags = labels.transform_keys(&:to_sym)
            next metric.set(tags, value) unless FAMILIES.fetch(name).type == :counter

            metric.increment(tags, by: increments.total(name, labels, value))
          end
        end
      end
    end
  end
end
