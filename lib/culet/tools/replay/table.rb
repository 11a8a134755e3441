# frozen_string_literal: true

require_relative "../../text/view"
require_relative "../../benchmark/results"
require_relative "../../model/statistics"

module Culet
  module Replay
    # The allocators side by side: resident against requested memory, and cost.
    class Table < Text::View
      NOTE = "Resident: the allocator's anonymous memory, sampled between operations. " \
             "Requested: allocated and not freed. " \
             "MB = 1,000,000 bytes. Medians, with 95 % bootstrap intervals where there is more than one run."
      TITLES = { "peak_rss_bytes" => "peak", "mean_rss_bytes" => "mean", "cpu_seconds" => "CPU" }.freeze
      private_constant :NOTE, :TITLES

      private

      def document = @subject

      def sections = [summary, (table if results.any?), exclusions, verdicts, wrap(NOTE)]

      def trace = document.fetch("trace")

      def results = document.fetch("results")

      def summary
        lines = ["#{bold(File.basename(trace["file"]))}: #{printable(trace["command"].join(" ")[0, 120])}",
                 "#{number(trace["operations"])} operations of #{count(trace["threads"], "thread")}; " \
                 "#{size(trace["peak_live_bytes"])} requested at the peak, #{size(trace["requested_bytes"])} in all"]
        [*lines, *remarks].map { |line| wrap(line) }.join("\n")
      end

      def remarks
        [programs, others, ("The recording ended before the program: #{trace["stopped"]}." if trace["stopped"]),
         (if trace["inherited_operations"].positive?
            "#{number(trace["inherited_operations"])} of the operations precede the fork of this process."
          end),
         (if trace["parent_missing"]
            "The parent's trace is missing beside this one, and with it the memory that the process inherited."
          end),
         (if trace["unknown_blocks"].positive?
            "#{count(trace["unknown_blocks"], "free")} of blocks from outside the trace skipped."
          end)].compact
      end

      def programs
        return unless trace["programs"] > 1

        "The process executed #{trace["programs"]} programs, one after the other: replayed is the last one."
      end

      def others
        files = trace["other_traces"].map { |file| File.basename(file) }
        return if files.empty?

        names = files.size > 3 ? [*files.first(3), "..."] : files
        "#{count(files.size, "other process", "other processes")} of the recording not replayed" \
          "#{", the largest first" if files.size > 1}: #{printable(names.join(", "))}."
      end

      def table
        columns = [["allocator", results.map { |result| result["allocator"] }, true],
                   ["peak resident MB", cells("peak_rss_bytes", 1e6)],
                   ["/ requested", ratios], ["mean MB", cells("mean_rss_bytes", 1e6)], cpu]
        if results.any? { |result| result["summary"]["instructions"] }
          columns << ["instructions M", cells("instructions", 1e6)]
        end
        grid(columns)
      end

      # In milliseconds below one second.
      def cpu
        longest = results.map { |result| result["summary"]["cpu_seconds"]["median"] }.max
        longest < 1 ? ["CPU ms", cells("cpu_seconds", 1e-3)] : ["CPU s", cells("cpu_seconds", 1.0)]
      end

      def cells(metric, size)
        medians = results.map { |result| result["summary"].dig(metric, "median") }
        least = medians.compact.min if medians.compact.uniq.size > 1
        results.zip(medians).map do |result, median|
          next "-" unless median

          low, high = result["summary"][metric].values_at("low", "high").map { |bound| bound && bound / size }
          text = Text::Numbers.interval(median / size, low, high)
          median == least ? best(text) : text
        end
      end

      # Peak resident memory as a multiple of the peak of requested memory.
      def ratios
        requested = trace["peak_live_bytes"]
        results.map do |result|
          requested.positive? ? format("%.2f", result["summary"]["peak_rss_bytes"]["median"].fdiv(requested)) : "-"
        end
      end

      def exclusions = note_lines(Benchmark::Results.new(document).exclusion_lines, "excluded")

      # A line for each allocator other than the baseline.
      def verdicts
        compared = document["comparisons"].select { |one| TITLES.key?(one["metric"]) }
                                          .group_by { |one| one["allocator"] }
        lines = compared.map { |allocator, list| wrap(verdict(allocator, list)) }
        lines << wrap(too_few) if too_few
        lines.join("\n") if lines.any?
      end

      def too_few
        Statistics.too_few(results.map { |result| result["runs"].size }.max) if results.size > 1
      end

      def verdict(allocator, comparisons)
        parts = comparisons.map do |one|
          shown = %w[smaller larger].include?(one["verdict"])
          ratio = shown ? Text::Numbers.ratio(one["ratio"].slice("median"), apart: true) : "no difference shown"
          "#{TITLES.fetch(one["metric"])} #{ratio}"
        end
        "#{allocator} / #{comparisons.first["baseline"]}: #{parts.join(", ")}"
      end
    end
  end
end
