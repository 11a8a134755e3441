# frozen_string_literal: true

require_relative "../errors"
require_relative "metric"

module Culet
  module Benchmark
    # A result document as the reports read it; it may lack any part.
    class Results
      # The results of one allocator on one workload.
      class Candidate
        attr_reader :allocator, :runs

        # @param allocator [String]
        # @param result [Hash] an element of the document's "results"
        # @param comparisons [Array<Hash>] those of this workload and allocator
        def initialize(allocator:, result:, comparisons:)
          @allocator = allocator
          @runs = Array(result["runs"])
          @summary = result["summary"] || {}
          @comparisons = comparisons.to_h { |comparison| [comparison["metric"], comparison] }
        end

        # @return [Numeric, nil] in bytes, seconds or per second
        def median(metric) = @summary.dig(metric.key, "median")

        # @return [Array(Numeric, Numeric), nil] the bounds of the interval; nil for a single run
        def bounds(metric)
          low, high = @summary.fetch(metric.key, nil)&.values_at("low", "high")
          [low, high] if low && high && runs.size > 1
        end

        # @return [Hash, nil] the document's comparison with the baseline
        def comparison(metric) = @comparisons[metric.key]

        # The run whose peak is nearest to the median peak, the earlier one of two equals.
        #
        # @return [Hash, nil]
        def median_run
          middle = median(METRIC.fetch("peak_rss_bytes"))
          curves = runs.select { |run| Array(run["samples"]).any? }
          return curves.first unless middle

          curves.min_by { |run| [(run["peak_rss_bytes"].to_f - middle).abs, run["run"].to_i] }
        end
      end

      # The name of a workload may be a long command, which the environment shows in full.
      LONGEST = 60
      private_constant :LONGEST

      # One workload with its candidates.
      Workload = Struct.new(:name, :candidates, :exclusions, :baseline, keyword_init: true) do
        # @return [String] its name, cut to 60 characters
        def title = name.size > LONGEST ? "#{name[0, LONGEST - 1].rstrip}…" : name

        # @return [Array<Metric>] with a median of at least one candidate
        def metrics = METRICS.select { |metric| candidates.any? { |candidate| candidate.median(metric) } }

        def server? = metrics.any?(&:server)

        # @return [Candidate, nil]
        def candidate(allocator) = candidates.find { |candidate| candidate.allocator == allocator }

        # @return [Array(String, Float)] one unit for all candidates
        def unit(metric)
          metric.unit(candidates.flat_map { |candidate| [candidate.median(metric), *candidate.bounds(metric)] })
        end

        # @param interval [Boolean] whether to add the interval
        # @return [String, nil] the median of a candidate in that unit; nil: there is none
        def figure(candidate, metric, interval: true)
          size = unit(metric).last
          median = candidate.median(metric) or return
          bounds = candidate.bounds(metric) if interval
          Text::Numbers.interval(median / size, *bounds&.map { |bound| bound / size })
        end

        # @return [Array<Candidate>] with the best median; none when all are equal
        def best(metric)
          rated = candidates.select { |candidate| candidate.median(metric) }
          medians = rated.map { |candidate| candidate.median(metric) }
          return [] if medians.uniq.size < 2

          best = metric.better == "larger" ? medians.max : medians.min
          rated.select { |candidate| candidate.median(metric) == best }
        end

        # @return [Range] number of runs per candidate
        def run_counts = Range.new(*candidates.map { |candidate| candidate.runs.size }.minmax.map(&:to_i))

        # @return [Boolean] whether there are samples to plot
        def samples? = candidates.any?(&:median_run)
      end

      attr_reader :document

      # @param document [Hash] the result document of a comparison; not changed
      def initialize(document)
        @document = scrub(document)
      end

      # @return [Array<Workload>] in the document's order, including those without a result
      def workloads
        @workloads ||= begin
          names = (results + exclusions).map { |entry| entry["workload"] }.compact.uniq
          names.map { |name| workload(name) }
        end
      end

      # @return [Array<String>] in the document's order
      def allocators
        @allocators ||= [*list("allocators").map { |entry| entry["name"] },
                         *(results + exclusions).map { |entry| entry["allocator"] }].compact.uniq
      end

      # @return [String, nil] the allocator that ratios refer to; nil without comparisons
      def baseline = @baseline ||= list("comparisons").map { |entry| entry["baseline"] }.compact.first

      # @return [String, nil] the allocator that the findings are about: culet
      def subject = allocators.find { |name| family(name) == "culet" }

      # @return [Hash]
      def environment = document["environment"] || {}

      # @param entry [Hash] of `allocator_details`
      # @return [String] the variables that choose the allocator
      def settings(entry)
        entry["environment"].to_h.map { |name, value| value.nil? ? "#{name} unset" : "#{name}=#{value}" }.join(", ")
      end

      # @return [Array<Hash>]
      def exclusions = list("excluded")

      # @return [Array<Hash>] name, version, library, environment of each allocator
      def allocator_details = list("allocators")

      # @return [Boolean] false when the comparison was interrupted
      def complete? = document["complete"] != false

      # @param entry [Hash] of `exclusions`
      # @return [String] the reason and, where there is one, the remedy
      def exclusion_sentence(entry)
        reason = sentence(entry["reason"] || "no reason recorded")
        [reason, entry["remedy"] && sentence(entry["remedy"])].compact.join(" ")
      end

      # @param list [Array<Hash>] of `exclusions`
      # @return [Array<String>] allocator, run, and that sentence
      def exclusion_lines(list = exclusions)
        list.map do |entry|
          "#{entry["allocator"]}#{", run #{entry["run"]}" if entry["run"]}: #{exclusion_sentence(entry)}"
        end
      end

      # @return [String] the name without its setting: "jemalloc" of "jemalloc:narenas=2"
      def family(name) = name.to_s[/\A[^:]*/]

      private

      def results = list("results")

      def list(key) = Array(document[key])

      def workload(name)
        candidates = results.select { |entry| entry["workload"] == name && Array(entry["runs"]).any? }.map do |entry|
          pair = entry.values_at("workload", "allocator")
          comparisons = list("comparisons").select { |one| one.values_at("workload", "allocator") == pair }
          Candidate.new(allocator: entry["allocator"], result: entry, comparisons: comparisons)
        end
        Workload.new(name: name, candidates: candidates.sort_by { |candidate| allocators.index(candidate.allocator) },
                     exclusions: exclusions.select { |entry| entry["workload"] == name },
                     baseline: list("comparisons").find { |entry| entry["workload"] == name }&.fetch("baseline", nil))
      end

      def sentence(text)
        text = text.strip
        text.match?(/[.!?]\z/) ? text : "#{text}."
      end

      # Names and reasons come from commands and their stderr: invalid UTF-8 breaks JSON and ERB, control characters
      # control the terminal.
      def scrub(value)
        case value
        when Hash then value.to_h { |key, one| [scrub(key), scrub(one)] }
        when Array then value.map { |one| scrub(one) }
        when String then clean(value)
        when Float then value.finite? ? value : nil
        else value
        end
      end

      def clean(text)
        text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
        text.valid_encoding? && !text.match?(/[[:cntrl:]]/) ? text : text.scrub("�").gsub(/[[:cntrl:]]+/, " ")
      end
    end
  end
end
