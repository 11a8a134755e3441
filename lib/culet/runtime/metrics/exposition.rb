# frozen_string_literal: true

module Culet
  module Metrics
    # The text of a scrape, in the format of Prometheus (0.0.4) or OpenMetrics (1.0).
    class Exposition
      ESCAPES = { "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n" }.freeze
      private_constant :ESCAPES

      # @param format [Symbol] :prometheus or :openmetrics
      def initialize(format)
        @open = format == :openmetrics
      end

      # @param processes [Array<Array(Hash{String => String}, Array)>] labels of a process, and its samples
      def text(processes)
        lines = FAMILIES.transform_values { [] }
        processes.each do |common, samples|
          prefix = labels(common)
          samples.each { |name, own, value| lines.fetch(name) << line(name, prefix, own, value) }
        end
        blocks = lines.filter_map { |name, list| head(FAMILIES.fetch(name)) + list.join unless list.empty? }
        blocks << "# EOF\n" if @open
        blocks.join
      end

      private

      def head(family)
        name = family.name
        type = family.type
        return "# HELP #{name} #{family.help}\n# TYPE #{name} #{type == :info ? "gauge" : type}\n" unless @open

        base = name.sub(/_(?:total|info)\z/, "")
        unit = "# UNIT #{base} #{family.unit}\n" unless family.unit.empty?
        "# TYPE #{base} #{type}\n#{unit}# HELP #{base} #{family.help}\n"
      end

      def line(name, prefix, own, value)
        all = own.empty? ? prefix : [prefix, labels(own)].reject(&:empty?).join(",")
        all.empty? ? "#{name} #{value}\n" : "#{name}{#{all}} #{value}\n"
      end

      def labels(hash) = hash.map { |name, value| "#{name}=\"#{value.gsub(/[\\"\n]/, ESCAPES)}\"" }.join(",")
    end
  end
end
