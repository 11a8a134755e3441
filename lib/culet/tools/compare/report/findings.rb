# frozen_string_literal: true

require_relative "../statistics"
require_relative "../../../text/lines"
require_relative "../../../text/numbers"
require_relative "model"

module Culet
  module Compare
    module Report
      # The result in words, computed from the document: it says so when culet
      # loses and when nothing is shown.
      class Findings
        PEAK = METRIC.fetch("peak_rss_bytes")
        LEFT = METRIC.fetch("end_rss_bytes")
        CPU = METRIC.fetch("cpu_seconds")
        COST = METRIC.fetch("cpu_per_request_seconds")
        RATE = METRIC.fetch("requests_per_second")

        # @param model [Model]
        def initialize(model)
          @model = model
        end

        # @return [Array<String>] the first paragraph's sentences
        def lead
          return ["No candidate completed a run, so there is nothing to compare."] if measured.empty?

          [*(subject ? subject_lead : lowest_lead), runs_sentence, interruption].compact
        end

        # @param workload [Model::Workload]
        # @return [Array<String>] what this workload shows
        def workload(workload)
          return ["No candidate completed a run on #{workload.title}."] if workload.candidates.empty?

          one = subject && workload.candidate(subject)
          return [subject_missing(workload), lowest(workload)].compact unless one

          [peak(workload, one), lowest(workload, one), *others(workload, one)].compact
        end

        # @param comparison [Hash, nil]
        # @return [String] "smaller: 0.48 (0.46–0.51)", "no difference shown by 5 runs", "not compared"
        def verdict(comparison)
          return "not compared" unless comparison
          return "no difference shown by #{Text::Numbers.count(comparison["runs"].to_i, "run")}" unless difference?(comparison)

          "#{comparison["verdict"]}: #{ratio(comparison)}"
        end

        # @param comparison [Hash]
        # @return [String] "0.48 (0.46–0.51)"; without an interval where one run gives none
        def ratio(comparison)
          ratio = comparison["runs"].to_i > 1 ? comparison["ratio"] : comparison["ratio"]&.slice("median")
          Text::Numbers.ratio(ratio, apart: difference?(comparison))
        end

        # @param comparison [Hash]
        # @return [String] "0.48", rounded as in `ratio`
        def point(comparison) = ratio(comparison).sub(/ .*/, "")

        # @return [Boolean] whether the document's verdict is a difference
        def difference?(comparison) = %w[smaller larger].include?(comparison && comparison["verdict"])

        # @return [Symbol] :good, :bad or :neutral, of the candidate against the baseline
        def judgement(comparison, metric)
          return :neutral unless difference?(comparison)

          comparison["verdict"] == metric.better ? :good : :bad
        end

        # @return [String, nil] what "when the work is done" means; nil where no workload has that figure
        def left_sentence
          return if measured.none? { |workload| workload.metrics.include?(LEFT) }

          "\"When the work is done\" (end) is, for a built-in workload, after a full collection and a second's rest; for a server, a second " \
            "after its load; for another command, just before it ends."
        end

        # @return [String, nil] where the figures come from
        def runs_sentence
          counts = measured.flat_map { |workload| workload.run_counts.minmax }.minmax
          return "One run each: a single run has no interval and shows no difference." if counts == [1, 1]

          medians = "Medians of #{counts.uniq.join(" to ")} runs each"
          return "#{medians}: too few to show a difference, which takes at least #{Statistics::LEAST_RUNS}." if counts.last < Statistics::LEAST_RUNS

          "#{medians}; a difference is claimed only where the runs show one."
        end

        # @return [String, nil]
        def interruption
          return if @model.complete?

          "The comparison was interrupted: what follows is what had been completed by then."
        end

        private

        attr_reader :model

        def subject = model.subject

        def measured = model.workloads.select { |workload| workload.candidates.any? }

        # Against the baseline: where the subject's peak is lower, higher, undecided.
        def subject_lead
          return ["#{subject} is the baseline here; see each workload for how the others compare with it."] if subject == model.baseline

          groups = measured.group_by { |workload| standing(workload) }
          clauses = [clause(groups["smaller"], "lower on"), clause(groups["larger"], "higher on")].compact
          sentences = []
          sentences << "Against #{model.baseline}, peak resident memory under #{subject} is #{clauses.join(" and ")}." if clauses.any?
          sentences << undecided(groups["no difference shown"]) if groups["no difference shown"]
          sentences << "#{subject} has no result to compare on #{names(groups[nil])}." if groups[nil]
          sentences
        end

        def standing(workload)
          comparison = workload.candidate(subject)&.comparison(PEAK)
          return unless comparison

          difference?(comparison) ? comparison["verdict"] : "no difference shown"
        end

        def clause(workloads, words)
          return unless workloads

          "#{words} " + Text::Lines.list(workloads.map do |workload|
            "#{workload.title} (#{point(workload.candidate(subject).comparison(PEAK))} times)"
          end)
        end

        def undecided(workloads)
          "On #{names(workloads)} the runs show no difference between the peaks of #{subject} and #{model.baseline}."
        end

        def lowest_lead
          measured.filter_map { |workload| lowest(workload)&.then { |text| "On #{workload.title}: #{text[0].downcase}#{text[1..]}" } }
        end

        def names(workloads) = Text::Lines.list(workloads.map(&:title))

        def peak(workload, one)
          return "#{one.allocator} has no peak RSS on record." unless one.median(PEAK)

          start = "On #{workload.title}, #{one.allocator} peaks at #{amount(workload, PEAK, one)}"
          comparison = one.comparison(PEAK)
          base = comparison && workload.candidate(comparison["baseline"])
          return "#{start}." unless base
          return "#{start} and #{base.allocator} at #{amount(workload, PEAK, base)}; #{Text::Numbers.count(comparison["runs"].to_i, "run")} " \
                 "show#{"s" if comparison["runs"] == 1} no difference." unless difference?(comparison)

          "#{start}, #{ratio(comparison)} times the #{amount(workload, PEAK, base)} of #{base.allocator}."
        end

        def lowest(workload, one = nil)
          best = workload.best(PEAK)
          return if best.empty?

          names = Text::Lines.list(best.map(&:allocator))
          return "No candidate's median peak is lower." if one && best.include?(one)

          "The lowest median peak is that of #{names}, #{amount(workload, PEAK, best.first)}."
        end

        def others(workload, one)
          [LEFT, CPU, COST, RATE].filter_map do |metric|
            comparison = one.comparison(metric)
            next unless comparison
            next "No difference in #{metric.title} is shown." unless difference?(comparison)
            next left(workload, one, comparison) if metric == LEFT

            "It #{metric.kind == :rate ? "serves" : "takes"} #{ratio(comparison)} times the #{metric.title} of #{comparison["baseline"]}."
          end
        end

        def left(workload, one, comparison)
          "When the work is done it keeps #{amount(workload, LEFT, one)}, #{ratio(comparison)} times what #{comparison["baseline"]} keeps."
        end

        def subject_missing(workload)
          return unless subject

          excluded = workload.exclusions.find { |entry| entry["allocator"] == subject }
          excluded ? "#{subject} was left out: #{model.exclusion_sentence(excluded)}" : "#{subject} has no result on #{workload.title}."
        end

        def amount(workload, metric, candidate)
          symbol, size = workload.unit(metric)
          "#{Text::Numbers.significant(candidate.median(metric) / size)} #{symbol}"
        end
      end
    end
  end
end
