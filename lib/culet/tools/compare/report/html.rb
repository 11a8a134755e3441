# frozen_string_literal: true

require_relative "../../../render/html_page"
require_relative "../../../text/lines"
require_relative "../../../text/numbers"
require_relative "../../../text/size"
require_relative "chart_data"
require_relative "findings"

module Culet
  module Compare
    module Report
      # The comparison as a page; its content security policy forbids requests.
      class Html < HtmlPage
        FOLDER = File.expand_path("html", __dir__)
        SCRIPTS = [*COMMON, "charts"].freeze
        STYLES = ["page.css"].freeze

        # From the vega gem: Vega draws, Vega-Lite describes the charts.
        LIBRARIES = %w[vega.js vega-lite.js].freeze

        # @param document [Hash] the result document of a comparison
        def initialize(document)
          super()
          @original = document
          @model = Benchmark::Results.new(document)
          @findings = Findings.new(@model)
          @palette = Benchmark::Palette.new(@model)
          @charts = ChartData.new(@model, palette: @palette)
        end

        private

        attr_reader :model, :findings, :palette, :charts

        def libraries
          LIBRARIES.map { |name| script_text(File.read(File.join(vega, name), encoding: Encoding::UTF_8)) }
        end

        def vega
          gem = Gem.loaded_specs["vega"] || Gem::Specification.find_by_name("vega")
          File.join(gem.full_gem_path, "vendor/assets/javascripts")
        rescue Gem::MissingSpecError
          raise MissingGem.new("the HTML report", "vega", instead: "--json")
        end

        # In a script element the HTML parser reacts to its end and to the start of a comment. JavaScript has both in
        # strings and patterns only, where a backslash changes nothing.
        def script_text(source) = source.gsub(%r{</(?=script)}i, '<\/').gsub("<!--", '<\!--')

        # The original document, or the cleaned one where JSON cannot represent it.
        def document_json
          json(@original)
        rescue JSON::GeneratorError, EncodingError
          json(model.document)
        end

        def started_at = model.environment["started_at"].to_s[/\A[\d-]{10}/]

        def title
          few = model.workloads.size.between?(1, 3)
          "Allocators compared#{" on #{Text::Lines.list(model.workloads.map(&:title))}" if few}"
        end

        def file_name = "culet-compare#{"-#{started_at}" if started_at}.json"

        # An allocator's name breaks only before its settings.
        def breakable(allocator) = h(allocator).gsub(/[:,]/) { |mark| "#{mark}<wbr>" }

        def swatch(allocator)
          dashes = ' stroke-dasharray="5 3"' if palette.dashed?(allocator)
          stroke = %(stroke="var(--c-#{palette.colour(allocator)})"#{dashes})
          line = %(<line x1="1" y1="4" x2="21" y2="4" #{stroke}/>)
          %(<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true">#{line}</svg>)
        end

        def allocator_class(allocator) = model.family(allocator) == "culet" ? "own" : ""

        def heading(workload, metric)
          metric.kind == :rate ? metric.title : "#{metric.title}, #{workload.unit(metric).first}"
        end

        # A table is at most as wide as a laptop's screen; memory comes first.
        MOST_METRICS = 6
        private_constant :MOST_METRICS

        # @return [Array<Array<Benchmark::Metric>>] for a table each
        def metric_groups(workload)
          workload.metrics.partition { |metric| metric.kind == :bytes }.reject(&:empty?).flat_map do |metrics|
            metrics.each_slice((metrics.size / (metrics.size / MOST_METRICS.to_f).ceil.to_f).ceil).to_a
          end
        end

        # The verdict's CSS class and its lines; a mark repeats the colour.
        def verdict(workload, candidate, metric)
          return ["neutral", ["baseline"]] if candidate.allocator == workload.baseline

          comparison = candidate.comparison(metric)
          return ["neutral", ["not compared"]] unless comparison
          unless findings.difference?(comparison)
            return ["neutral", ["no difference shown", findings.ratio(comparison)]]
          end

          judgement = findings.judgement(comparison, metric)
          [judgement.to_s, ["#{judgement == :good ? "✓" : "✗"} #{findings.verdict(comparison)}"]]
        end

        # The verdict without the interval, for the overview.
        def brief_verdict(workload, candidate, metric)
          judgement, lines = verdict(workload, candidate, metric)
          [judgement, lines.join(", ").sub(/ \([^)]*\)\z/, "")]
        end

        def best?(workload, candidate, metric) = workload.best(metric).include?(candidate)

        # The median distance of two samples in milliseconds.
        def sampling_milliseconds
          distances = model.workloads.flat_map(&:candidates).flat_map(&:runs).flat_map do |run|
            times = Array(run["samples"]).map { |sample| sample["at_seconds"] }.compact
            times.each_cons(2).map { |one, other| other - one }
          end
          return if distances.empty?

          Text::Numbers.significant(Statistics.median(distances) * 1000)
        end

        # @return [Array<Array(String, String)>] name, without the unit that the value has, and text of each entry
        def environment
          model.environment.except("command").map do |key, value|
            [key.sub(/_(bytes|seconds)\z/, "").tr("_", " "), environment_value(key, value)]
          end
        end

        # @param key [String] its key in the document; one that ends in `_bytes` is a size
        def environment_value(key, value)
          case value
          when nil, {}, [] then "none"
          when Numeric then number(key, value)
          when Array then value.map { |one| environment_value(key, one) }.join(", ")
          when Hash then value.map { |name, one| "#{name}=#{environment_value(name, one)}" }.join(", ")
          else value.to_s
          end
        end

        # Pages have a size in KiB.
        def number(key, value)
          return "#{value} s" if key.end_with?("_seconds")
          return value.to_s unless key.end_with?("_bytes")

          key.start_with?("page_") ? "#{value / 1024} KiB" : Text::Size.human(value)
        end
      end
    end
  end
end
