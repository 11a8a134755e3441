# frozen_string_literal: true

require_relative "../../../text/numbers"
require_relative "environment_value"
require_relative "findings"

module Culet
  module Compare
    module Report
      # The comparison as GitHub Markdown.
      class Markdown
        # @param document [Hash] the result document of a comparison
        def initialize(document)
          @model = Benchmark::Results.new(document)
          @findings = Findings.new(@model)
        end

        # @return [String]
        def to_s
          ["# Allocators compared", escape(findings.lead.join(" ")),
           *model.workloads.map { |workload| section(workload) },
           exclusions, reproduction, environment, allocators, meaning].compact.join("\n\n") << "\n"
        end

        private

        attr_reader :model, :findings

        def section(workload)
          parts = ["## #{escape(workload.name)}", escape(findings.workload(workload).join(" "))]
          parts << figures(workload) if workload.candidates.any?
          parts << ratios(workload) if workload.baseline && workload.candidates.any?
          parts.join("\n\n")
        end

        def figures(workload)
          titles = workload.metrics.map do |metric|
            metric.kind == :rate ? metric.title : "#{metric.title}, #{workload.unit(metric).first}"
          end
          headings = ["allocator", "runs", *titles]
          rows = workload.candidates.map do |candidate|
            [candidate.allocator, candidate.runs.size.to_s,
             *workload.metrics.map { |metric| figure(workload, candidate, metric) }]
          end
          table(headings, rows, figures: headings.size - 1)
        end

        def figure(workload, candidate, metric)
          text = workload.figure(candidate, metric) || "–"
          workload.best(metric).include?(candidate) ? Bold.new(text) : text
        end

        # A cell in bold type.
        Bold = Struct.new(:text)

        def ratios(workload)
          metrics = workload.metrics.select do |metric|
            workload.candidates.any? { |candidate| candidate.comparison(metric) }
          end
          rows = workload.candidates.reject { |candidate| candidate.allocator == workload.baseline }.map do |candidate|
            [candidate.allocator, *metrics.map { |metric| ratio(candidate.comparison(metric)) }]
          end
          "Ratios to #{escape(workload.baseline)}, paired run by run:\n\n" \
            "#{table(["allocator", *metrics.map(&:title)], rows)}"
        end

        def ratio(comparison)
          return findings.verdict(comparison) if comparison.nil? || findings.difference?(comparison)

          [findings.ratio(comparison), findings.verdict(comparison)].reject(&:empty?).join(": ")
        end

        def exclusions
          return if model.exclusions.empty?

          rows = model.exclusions.map do |entry|
            [entry["workload"] || "all", entry["allocator"].to_s, entry["run"] ? entry["run"].to_s : "all",
             model.exclusion_sentence(entry)]
          end
          "## Excluded\n\n#{table(%w[workload allocator run reason], rows)}"
        end

        def reproduction
          command = model.environment["command"]
          return unless command

          fence = "`" * [3, command.scan(/`+/).map(&:length).max.to_i + 1].max
          "## Reproduce\n\n#{fence}sh\n#{command}\n#{fence}"
        end

        def environment
          return if model.environment.empty?

          "## Environment\n\n#{table(%w[setting value], EnvironmentValue.rows(model.environment))}"
        end

        def allocators
          return if model.allocator_details.empty?

          rows = model.allocator_details.map do |entry|
            [entry["name"].to_s, entry["version"].to_s, entry["library"].to_s, model.settings(entry)]
          end
          "## Allocators\n\n#{table(%w[allocator version library environment], rows)}"
        end

        def meaning
          "Medians, with 95 % bootstrap intervals in parentheses where there is more than one run. " \
            "RSS is the resident memory of all processes of a run; a shared page counts in each process, " \
            "PSS divides it. MB = 1,000,000 bytes. #{"#{findings.end_sentence} " if findings.end_sentence}" \
            "The best median is bold, even where no difference is shown."
        end

        def table(headings, rows, figures: 0)
          lines = [headings.map { |text| escape(text) },
                   headings.each_index.map { |index| index < headings.size - figures ? "---" : "---:" },
                   *rows.map { |row| row.map { |cell| cell.is_a?(Bold) ? "**#{escape(cell.text)}**" : escape(cell) } }]
          lines.map { |cells| "| #{cells.join(" | ")} |" }.join("\n")
        end

        # The name of a workload may be any command.
        def escape(text)
          text.to_s.gsub(/[\\`*_{}\[\]<>|#~]/) { |char| { "<" => "&lt;", ">" => "&gt;" }.fetch(char) { "\\#{char}" } }
        end
      end
    end
  end
end
