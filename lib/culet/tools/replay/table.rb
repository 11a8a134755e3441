# frozen_string_literal: true

require_relative "../../errors"
require_relative "../compare/statistics"
require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"

module Culet
  module Replay
    # The candidates side by side: memory against what was requested, and cost.
    class Table

      NOTE = "Resident: the allocator's anonymous memory, sampled between operations; blocks count as written in full. " \
             "Requested: bytes that were asked for and not freed. MB = 1,000,000 bytes. Medians, with 95 % bootstrap " \
             "intervals where there are several runs."
      private_constant :NOTE

      # @param document [Hash] of Runner
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(document, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @document = document
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s
        parts = [about, (table if results.any?), exclusions, verdicts, wrap(NOTE)].compact
        text = "#{parts.join("\n\n")}\n"
        @unicode ? text : text.tr("–…", "-.")
      end

      private

      def trace = @document.fetch("trace")

      def results = @document.fetch("results")

      def about
        lines = ["#{bold(File.basename(trace["file"]))}: #{trace["command"].join(" ")[0, 120]}",
                 "#{Text::Numbers.grouped(trace["operations"])} operations of #{Text::Numbers.count(trace["threads"], "thread")}; at most " \
                 "#{Text::Size.human(trace["peak_live_bytes"])} requested at once, #{Text::Size.human(trace["requested_bytes"])} in all"]
        [*lines, *remarks].map { |line| wrap(line) }.join("\n")
      end

      def remarks
        found = []
        found << "The recording ended before the program did: #{trace["stopped"]}." if trace["stopped"]
        found << "#{Text::Numbers.grouped(trace["inherited_operations"])} of them are the parent's, before it forked this process." if trace["inherited_operations"].positive?
        found << "The parent's trace is not beside this one, so what the process inherited is not there." if trace["parent_missing"]
        if trace["unknown_blocks"].positive?
          found << "#{Text::Numbers.count(trace["unknown_blocks"], "free")} of blocks from outside the trace #{trace["unknown_blocks"] == 1 ? "is" : "are"} left out."
        end
        found
      end

      def table
        columns = [["allocator", names, true], ["peak resident MB", bytes("peak_rss_bytes")], ["/ requested", ratios],
                   ["mean MB", bytes("mean_rss_bytes")], cpu]
        columns << ["instructions M", figures("instructions", 1e6)] if results.any? { |result| result["summary"]["instructions"] }
        Text::Table.render(columns, unicode: @unicode)
      end

      def names = results.map { |result| result["allocator"] }

      # In milliseconds, unless it takes seconds.
      def cpu
        most = results.map { |result| result["summary"]["cpu_seconds"]["median"] }.max
        most < 1 ? ["CPU ms", figures("cpu_seconds", 1e-3)] : ["CPU s", figures("cpu_seconds", 1.0)]
      end

      def bytes(figure) = figures(figure, 1e6)

      def figures(figure, size)
        medians = results.map { |result| result["summary"].dig(figure, "median") }
        least = medians.compact.min
        results.zip(medians).map do |result, median|
          next "-" unless median

          low, high = result["summary"][figure].values_at("low", "high").map { |bound| bound && bound / size }
          text = Text::Numbers.interval(median / size, low, high)
          median == least && medians.compact.uniq.size > 1 ? best(text) : text
        end
      end

      # Peak against peak: of all the program had asked for at once, how many times was resident.
      def ratios
        requested = trace["peak_live_bytes"]
        results.map do |result|
          requested.positive? ? format("%.2f", result["summary"]["peak_rss_bytes"]["median"].fdiv(requested)) : "-"
        end
      end

      def exclusions
        lines = @document["excluded"].map do |entry|
          wrap("left out: #{entry["allocator"]}#{", run #{entry["run"]}" if entry["run"]}: #{[entry["reason"], entry["remedy"]].compact.join(". ")}")
        end
        lines.join("\n") if lines.any?
      end

      # What the runs show of candidates against the baseline, one line for each.
      def verdicts
        lines = @document["comparisons"].select { |one| %w[peak_rss_bytes mean_rss_bytes cpu_seconds].include?(one["metric"]) }
                                        .group_by { |one| one["allocator"] }.map { |allocator, list| wrap(sentence(allocator, list)) }
        lines << wrap(few) if few
        lines.join("\n") if lines.any?
      end

      # Of so few runs a comparison says "no difference shown" whatever they are.
      def few
        Compare::Statistics.too_few(results.map { |result| result["runs"].size }.max) if results.size > 1
      end

      def sentence(allocator, comparisons)
        titles = { "peak_rss_bytes" => "peak", "mean_rss_bytes" => "mean", "cpu_seconds" => "CPU" }
        parts = comparisons.map do |one|
          shown = %w[smaller larger].include?(one["verdict"])
          "#{titles[one["metric"]]} #{shown ? Text::Numbers.ratio(one["ratio"].slice("median"), apart: true) : "no difference shown"}"
        end
        "#{allocator} / #{comparisons.first["baseline"]}: #{parts.join(", ")}"
      end

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text

      def best(text) = @color ? "\e[1;32m#{text}\e[0m" : text

      def wrap(text) = text.gsub(/(.{1,#{Text::Lines.sentence_columns}})(?:\s+|\z)/, "\\1\n").chomp
    end
  end
end
