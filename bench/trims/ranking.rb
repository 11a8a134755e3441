# frozen_string_literal: true

require "culet/text/numbers"
require_relative "../results/table"

# End RSS without trims, with the extension that trims at the end of the sweep (the spike) and with `culet/auto`.
class Ranking
  # End RSS with `culet/auto`, as a multiple of that with the spike.
  GOAL = 1.15
  HEAD = ["workload", "setting", "end RSS without", "spike", "culet/auto", "to the spike",
          "peak RSS: without, spike, auto", "CPU s: without, spike, auto"].freeze
  KINDS = [nil, "spike", "trim"].freeze
  CONTENDERS = ["no trims", "trim at the end of the sweep", "culet/auto"].freeze
  METRICS = { "end RSS" => ["end_rss_bytes", "MB", 1e-6], "CPU time" => ["cpu_seconds", "s", 1] }.freeze
  private_constant :HEAD, :KINDS, :CONTENDERS, :METRICS

  # @param document [Hash] of the comparison
  def initialize(document)
    @results = document.fetch("results").to_h do |result|
      [result.values_at("workload", "allocator"), result.fetch("summary")]
    end
  end

  def rows
    groups.flat_map do |(workload, setting), summaries|
      METRICS.flat_map do |metric, (key, unit, factor)|
        CONTENDERS.zip(summaries).filter_map do |contender, summary|
          next unless summary

          Bench::Row.of_summary(summary[key], factor: factor, subject: "#{workload} on #{setting}",
                                              contender: contender, metric: metric, unit: unit)
        end
      end
    end
  end

  def to_s = Bench::Table.markdown(HEAD, lines, left: HEAD.size)

  # @return [Boolean] whether the goal is reached on every workload and setting
  def reached? = groups.all? { |_, summaries| summaries.all? && ratio(summaries) <= GOAL }

  private

  # By workload and setting: the summaries of KINDS.
  def groups
    plain = @results.keys.map do |workload, allocator|
      [workload, allocator.sub(/:(spike|trim)\b,?/, ":").delete_suffix(":")]
    end
    plain.uniq.to_h do |workload, setting|
      [[workload, setting], KINDS.map { |kind| @results[[workload, with(setting, kind)]] }]
    end
  end

  def with(setting, kind)
    return setting unless kind

    name, own = setting.split(":", 2)
    "#{name}:#{[kind, own].compact.join(",")}"
  end

  def ratio(summaries) = summaries.last.dig("end_rss_bytes", "median").fdiv(summaries[1].dig("end_rss_bytes", "median"))

  def lines
    groups.map do |names, summaries|
      [*names, *summaries.map { |summary| figure(summary, "end_rss_bytes", 1e6) },
       summaries.all? ? format("%.2f", ratio(summaries)) : "-",
       *[["peak_rss_bytes", 1e6], ["cpu_seconds", 1]].map do |key, unit|
         summaries.map { |summary| median(summary, key, unit) }.join(", ")
       end]
    end
  end

  def figure(summary, key, unit)
    return "-" unless summary

    values = summary.fetch(key).values_at("median", "low", "high")
    Culet::Text::Numbers.interval(*values.map { |value| value && (value / unit) })
  end

  def median(summary, key, unit) = summary ? Culet::Text::Numbers.significant(summary.dig(key, "median") / unit) : "-"
end
