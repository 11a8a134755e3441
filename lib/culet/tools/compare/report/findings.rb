# frozen_string_literal: true

require_relative "../../../model/statistics"
require_relative "../../../text/lines"
require_relative "../../../text/numbers"
require_relative "../../../benchmark/results"

module Culet
  module Compare
    # The forms of a comparison's result: a table and a page.
    module Report
      # The result in sentences, including culet's losses and the comparisons without a difference.
      class Findings
        PEAK = Benchmark::METRIC.fetch("peak_rss_bytes")
        AT_END = Benchmark::METRIC.fetch("end_rss_bytes")
        CPU = Benchmark::METRIC.fetch("cpu_seconds")
        COST = Benchmark::METRIC.fetch("cpu_per_request_seconds")
        RATE = Benchmark::METRIC.fetch("requests_per_second")

        # @param model [Benchmark::Results]
        def initialize(model)
          @model = model
        end

        # @return [Array<Benchmark::Results::Workload>] those on which an allocator completed a run
        def measured = model.workloads.select { |workload| workload.candidates.any? }

        # @return [Array<String>] the first paragraph's sentences
        def lead
          return ["No allocator completed a run."] if measured.empty?

          [*(subject ? subject_lead : lowest_lead), runs_sentence, interruption].compact
        end

        # @return [Array<String>] what this workload shows
        def workload(workload)
          return ["No allocator completed a run on #{workload.title}."] if workload.candidates.empty?

          one = subject && workload.candidate(subject)
          return [subject_missing(workload), lowest(workload)].compact unless one

          [peak(workload, one), lowest(workload, one), *others(workload, one)].compact
        end

        # @param comparison [Hash, nil] one that shows a difference
        # @return [String] "smaller: 0.48 (0.46–0.51)", "not compared"
        def verdict(comparison) = comparison ? "#{comparison["verdict"]}: #{ratio(comparison)}" : "not compared"

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

        # @return [String, nil] what "at the end" means; nil where no workload has that metric
        def end_sentence
          return if measured.none? { |workload| workload.metrics.include?(AT_END) }

          "\"At the end\" is one second after a full garbage collection for a built-in workload, " \
            "one second after the load for a server, and just before the exit for another command."
        end

        # @return [String] how many runs there are, and what they can show
        def runs_sentence
          counts = measured.flat_map { |workload| workload.run_counts.minmax }.minmax
          return "One run each, which has no interval and cannot show a difference." if counts == [1, 1]

          medians = "Medians of #{counts.uniq.join(" to ")} runs each"
          if counts.last < Statistics::LEAST_RUNS
            return "#{medians}, too few to show a difference, which takes at least #{Statistics::LEAST_RUNS}."
          end

          "#{medians}."
        end

        # @return [String, nil]
        def interruption
          return if @model.complete?

          "The comparison was interrupted; the results cover the runs that were complete."
        end

        private

        attr_reader :model

        def subject = model.subject

        # On which workloads the subject's peak is lower or higher, or shows no difference.
        def subject_lead
          if subject == model.baseline
            return ["#{subject} is the baseline; each workload compares the other allocators with it."]
          end

          groups = measured.group_by { |workload| peak_verdict(workload) }
          clauses = [clause(groups["smaller"], "lower"), clause(groups["larger"], "higher")].compact
          sentences = []
          sentences << "The peak RSS of #{subject} is #{clauses.join(" and ")}." if clauses.any?
          sentences << undecided(groups["no difference shown"]) if groups["no difference shown"]
          sentences << "There is no comparison for #{subject} on #{names(groups[nil])}." if groups[nil]
          sentences
        end

        def peak_verdict(workload)
          comparison = workload.candidate(subject)&.comparison(PEAK)
          return unless comparison

          difference?(comparison) ? comparison["verdict"] : "no difference shown"
        end

        def clause(workloads, adjective)
          return unless workloads

          "#{adjective} than that of #{model.baseline} on " + Text::Lines.list(workloads.map do |workload|
            "#{workload.title} (#{point(workload.candidate(subject).comparison(PEAK))} times)"
          end)
        end

        def undecided(workloads)
          "On #{names(workloads)}, the runs show no difference in peak RSS between #{subject} and #{model.baseline}."
        end

        def lowest_lead
          measured.filter_map { |workload| lowest(workload)&.then { |text| "On #{workload.title}, #{text}" } }
        end

        def names(workloads) = Text::Lines.list(workloads.map(&:title))

        def peak(workload, one)
          return "There is no peak RSS for #{one.allocator}." unless one.median(PEAK)

          start = "On #{workload.title}, #{one.allocator} peaks at #{amount(workload, PEAK, one)}"
          comparison = one.comparison(PEAK)
          base = comparison && workload.candidate(comparison["baseline"])
          return "#{start}." unless base

          unless difference?(comparison)
            runs = Text::Numbers.count(comparison["runs"].to_i, "run")
            return "#{start} and #{base.allocator} at #{amount(workload, PEAK, base)}; " \
                   "#{runs} show#{"s" if comparison["runs"] == 1} no difference."
          end

          "#{start}, #{ratio(comparison)} times the #{amount(workload, PEAK, base)} of #{base.allocator}."
        end

        def lowest(workload, one = nil)
          best = workload.best(PEAK)
          return if best.empty?

          names = Text::Lines.list(best.map(&:allocator))
          return "No other median peak is lower." if one && best.include?(one)

          "#{names} #{best.size == 1 ? "has" : "have"} the lowest median peak, #{amount(workload, PEAK, best.first)}."
        end

        def others(workload, one)
          [AT_END, CPU, COST, RATE].filter_map do |metric|
            comparison = one.comparison(metric)
            next unless comparison
            next "The runs show no difference in #{metric.title}." unless difference?(comparison)
            next at_end(workload, one, comparison) if metric == AT_END

            "#{one.allocator} #{metric.kind == :rate ? "serves" : "takes"} #{ratio(comparison)} times " \
              "the #{metric.title} of #{comparison["baseline"]}."
          end
        end

        def at_end(workload, one, comparison)
          "At the end #{one.allocator} holds #{amount(workload, AT_END, one)}, " \
            "#{ratio(comparison)} times the memory of #{comparison["baseline"]}."
        end

        def subject_missing(workload)
          return unless subject

          excluded = workload.exclusions.find { |entry| entry["allocator"] == subject }
          return "#{subject} has no result on #{workload.title}." unless excluded

          "#{subject} was excluded: #{model.exclusion_sentence(excluded)}"
        end

        def amount(workload, metric, candidate)
          symbol, size = workload.unit(metric)
          "#{Text::Numbers.significant(candidate.median(metric) / size)} #{symbol}"
        end
      end
    end
  end
end
