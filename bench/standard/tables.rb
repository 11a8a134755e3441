# frozen_string_literal: true

module StandardBench
  # The results in Markdown: how often culet is first, a table for each figure, and what is missing.
  class Tables
    # Times within this factor of the first count as first.
    TIME_FACTOR = 1.05

    def initialize(results)
      @results = results
    end

    def to_s
      parts = [*candidates.map { |name| summary(name) }, *Catalogue::FIGURES.map { |figure| table(figure) }, remarks]
      "#{parts.compact.join("\n\n")}\n"
    end

    private

    def candidates = @results.flat_map { |result| result.candidates.map(&:name) }.uniq

    def summary(name)
      time, cpu, memory = Catalogue::FIGURES
      "#{name}: time first or within #{TIME_FACTOR} of the first in #{share(time, name, TIME_FACTOR)} programs, " \
        "CPU time in #{share(cpu, name, TIME_FACTOR)}, peak RSS first in #{share(memory, name, 1)}."
    end

    def share(figure, name, factor)
      ratios = @results.filter_map { |result| result.ratio(figure, name) }
      "#{ratios.count { |ratio| ratio <= factor }} of #{ratios.size}"
    end

    def table(figure)
      rows = @results.flat_map(&:rows).select { |row| row.metric == figure.label }
      return if rows.empty?

      "## #{figure.label}, #{figure.unit_name}\n\n" \
        "#{Bench::Table.new(rows, ratio: candidates.last && [candidates.last, nil]).by_contender.chomp}"
    end

    def remarks
      lines = @results.flat_map(&:remarks).map { |remark| "- #{remark}" }
      lines.join("\n") unless lines.empty?
    end
  end
end
