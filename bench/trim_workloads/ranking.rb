# frozen_string_literal: true

require "culet/text/numbers"

# The result of the comparison as a table in Markdown: resident memory when the work is done without a trim, with the
# spike and with `culet/auto`, and what each cost.
class Ranking
  # That `culet/auto` may leave, as a multiple of what the spike leaves.
  GOAL = 1.15
  HEAD = ["workload", "setting", "end RSS without", "spike", "culet/auto", "to the spike", "peak RSS: without, spike, auto", "CPU s: without, spike, auto"].freeze
  KINDS = [nil, "spike", "trim"].freeze
  private_constant :HEAD, :KINDS


  # @param document [Hash] of the comparison
  def initialize(document)
    @results = document.fetch("results").to_h { |result| [result.values_at("workload", "allocator"), result.fetch("summary")] }
  end

  # @return [String]
  def to_s = [HEAD, HEAD.map { |_| "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |\n" }.join

  # @return [Boolean] whether the goal is reached on every workload and setting
  def reached? = groups.all? { |_, summaries| summaries.all? && ratio(summaries) <= GOAL }

  private

  # The contenders' names without the trim.
  def groups
    plain = @results.keys.map { |workload, allocator| [workload, allocator.sub(/:(spike|trim)\b,?/, ":").delete_suffix(":")] }.uniq
    plain.to_h { |workload, setting| [[workload, setting], KINDS.map { |kind| @results[[workload, with(setting, kind)]] }] }
  end

  def with(setting, kind)
    return setting unless kind

    name, own = setting.split(":", 2)
    "#{name}:#{[kind, own].compact.join(",")}"
  end

  def ratio(summaries) = summaries.last.dig("end_rss_bytes", "median").fdiv(summaries[1].dig("end_rss_bytes", "median"))

  def rows
    groups.map do |names, summaries|
      [*names, *summaries.map { |summary| figure(summary, "end_rss_bytes", 1e6) }, summaries.all? ? format("%.2f", ratio(summaries)) : "-",
       *[["peak_rss_bytes", 1e6], ["cpu_seconds", 1]].map { |key, unit| summaries.map { |summary| median(summary, key, unit) }.join(", ") }]
    end
  end

  def figure(summary, key, unit)
    return "-" unless summary

    Culet::Text::Numbers.interval(*summary.fetch(key).values_at("median", "low", "high").map { |value| value && (value / unit) })
  end

  def median(summary, key, unit) = summary ? Culet::Text::Numbers.significant(summary.dig(key, "median") / unit) : "-"
end
