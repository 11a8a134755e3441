# frozen_string_literal: true

module Culet
  module Metrics
    # The text of a scrape, in the format of Prometheus (0.0.4).
    module Exposition
      ESCAPES = { "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n" }.freeze
      private_constant :ESCAPES

      module_function

      # @param processes [Array<Array(Hash{String => String}, Array)>] labels of a process, and its samples
      def text(processes)
        lines = FAMILIES.transform_values { [] }
        processes.each do |common, samples|
          prefix = labels(common)
          samples.each { |name, own, value| lines.fetch(name) << line(name, prefix, own, value) }
        end
        lines.filter_map { |name, list| head(FAMILIES.fetch(name)) + list.join unless list.empty? }.join
      end

      def head(family)
        type = family.type == :info ? "gauge" : family.type
        "# HELP #{family.name} #{family.help}\n# TYPE #{family.name} #{type}\n"
      end

      def line(name, prefix, own, value)
        all = own.empty? ? prefix : [prefix, labels(own)].reject(&:empty?).join(",")
        all.empty? ? "#{name} #{value}\n" : "#{name}{#{all}} #{value}\n"
      end

      def labels(hash) = hash.map { |name, value| "#{name}=\"#{value.gsub(/[\\"\n]/, ESCAPES)}\"" }.join(",")

      private_class_method :head, :line, :labels
    end
  end
end
