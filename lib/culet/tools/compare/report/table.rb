# frozen_string_literal: true

require_relative "../../../text/view"
require_relative "findings"

module Culet
  module Compare
    module Report
      # The comparison for a terminal: one table per workload.
      class Table < Text::View
        # Which metrics have intervals; the wider forms where the terminal has room for them.
        FORMS = { all: ->(_) { true }, peak: ->(metric) { metric == Findings::PEAK }, none: ->(_) { false } }.freeze
        # From this width on, metrics go into a second table before the intervals of the peak are left out.
        ROOMY = 60
        private_constant :FORMS, :ROOMY

        # @param document [Hash] the result document of a comparison
        # @param options [Hash] color:, unicode: of Text::View
        def initialize(document, **options)
          super(**options)
          @model = Benchmark::Results.new(document)
          @findings = Findings.new(@model)
        end

        private

        attr_reader :model, :findings

        def sections
          [(wrap(findings.lead.first) if findings.measured.empty?),
           (wrap(findings.interruption) unless model.complete?),
           *model.workloads.map { |workload| section(workload) },
           excluded(model.exclusions.reject { |entry| entry["workload"] }), note]
        end

        def section(workload)
          columns = Text::Lines.columns
          title = bold(columns ? Text::Table.cut(workload.name, columns, @unicode) : workload.name)
          body = ["No allocator completed a run."]
          body = [grid(columns(workload)), ratios(workload)] if workload.candidates.any?
          ["#{title}\n#{body.shift}", *body, excluded(workload.exclusions)]
        end

        def columns(workload)
          all, peak, none = FORMS.keys.map { |form| columns_as(form, workload) }
          [all, peak].find { |columns| fits?(columns) } || (Text::Lines.columns >= ROOMY ? peak : none)
        end

        # A heading can be broken at its spaces.
        def fits?(columns)
          room = Text::Lines.columns or return true

          widths = columns.map { |heading, cells, _| [*heading.split, *cells].map { |text| Text::Lines.width(text) }.max }
          widths.sum { |width| width + 2 } <= room
        end

        def columns_as(form, workload)
          peak, *others = workload.metrics.map do |metric|
            metric_column(workload, metric, FORMS.fetch(form).call(metric))
          end
          [["allocator", workload.candidates.map(&:allocator), true], peak,
           (verdict_column(workload, form) if workload.baseline), *others].compact
        end

        def metric_column(workload, metric, interval)
          winners = workload.best(metric)
          cells = workload.candidates.map do |candidate|
            text = workload.figure(candidate, metric, interval: interval) || "-"
            winners.include?(candidate) ? best(text) : text
          end
          ["#{metric.short}#{" " unless metric.kind == :rate}#{workload.unit(metric).first}", cells]
        end

        # Only a narrow terminal may cut the verdicts like names.
        def verdict_column(workload, form)
          cells = workload.candidates.map { |candidate| peak_verdict(workload, candidate, form) }
          ["peak RSS / #{workload.baseline}", cells, form == :none]
        end

        def peak_verdict(workload, candidate, form)
          return "baseline" if candidate.allocator == workload.baseline

          comparison = candidate.comparison(Findings::PEAK) or return findings.verdict(nil)
          return "no difference: #{findings.point(comparison)}" unless findings.difference?(comparison)

          form == :none ? "#{comparison["verdict"]}: #{findings.point(comparison)}" : findings.verdict(comparison)
        end

        # The paired ratios of the other metrics.
        def ratios(workload)
          metrics = workload.metrics - [Findings::PEAK]
          compared = workload.candidates.select { |candidate| metrics.any? { |metric| candidate.comparison(metric) } }
          return if compared.empty?

          metrics = metrics.select { |metric| compared.any? { |candidate| candidate.comparison(metric) } }
          undecided = metrics.none? do |metric|
            compared.any? { |candidate| findings.difference?(candidate.comparison(metric)) }
          end
          if undecided
            titles = Text::Lines.list(metrics.map(&:title))
            return wrap("The runs show no difference to #{workload.baseline} in #{titles}.")
          end

          grid([["ratio to #{workload.baseline}", compared.map(&:allocator), true],
                *metrics.map { |metric| ratio_column(compared, metric) }])
        end

        def ratio_column(candidates, metric)
          cells = candidates.map do |candidate|
            comparison = candidate.comparison(metric)
            findings.difference?(comparison) ? findings.point(comparison) : "-"
          end
          ["#{metric.short}#{"/s" if metric.kind == :rate}", cells]
        end

        def excluded(list) = note_lines(model.exclusion_lines(list), "excluded")

        def note
          return if findings.measured.empty?

          text = ["RSS is the resident memory of all processes of a run; a shared page counts in each process, " \
                  "PSS divides it. MB = 1,000,000 bytes.",
                  findings.end_sentence, findings.runs_sentence]
          if findings.measured.any? { |workload| workload.run_counts.max > 1 }
            text << "In parentheses: 95 % bootstrap intervals."
          end
          if model.baseline
            text << "Ratios to #{model.baseline} are paired run by run; \"-\" means no difference shown."
          end
          painted(wrap(text.compact.join(" ")), "2")
        end
      end
    end
  end
end
