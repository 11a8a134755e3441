# frozen_string_literal: true

module AllocatorBench
  # The results in Markdown: every goal with the figures of culet and of the best other contender, then a table for each
  # group.
  class Tables
    def initialize(results, contenders)
      @results = results
      @contenders = contenders
    end

    def to_s
      groups = @results.group_by { |result| result.probe.group }
      [*goals, *geometric_means, *groups.map { |group, results| section(group, results) }].join("\n")
    end

    private

    def section(group, results)
      shown = results.reject(&:skipped)
      names = results.map { |result| result.probe.name }
      lines = ["## #{Catalogue::GROUPS.fetch(group)}", "", "    bench/allocator/run #{names.join(" ")}", ""]
      lines.concat(table(shown)) unless shown.empty?
      lines.concat(remarks(results))
      "#{lines.join("\n")}\n"
    end

    def table(results)
      head = ["probe", "figure", *@contenders.map(&:name), "culet to the best other", "goal", "reached"]
      rows = results.flat_map { |result| result.probe.figures.map { |figure| row(result, figure) } }
      [Bench::Table.markdown(head, rows, left: 2)]
    end

    def row(result, figure)
      first = figure.equal?(result.probe.figures.first)
      values = @contenders.map { |contender| cell(result, figure, contender.name) }
      candidate = result.candidates.last&.name
      [first ? "#{result.probe.name}: #{result.probe.about}" : "", figure.label, *values,
       candidate ? against(result, figure, candidate) : "", figure.goal&.text(figure),
       candidate ? verdict(result.reached?(figure, candidate)) : ""]
    end

    def cell(result, figure, name)
      value = result.value(figure, name)
      value ? figure.show(value) : "-"
    end

    def against(result, figure, name)
      ratio = result.ratio(figure, name)
      ratio ? format("%.2f (%s)", ratio, result.best_other(figure)) : "-"
    end

    def verdict(reached) = { true => "yes", false => "**no**", nil => "" }.fetch(reached)

    def remarks(results)
      lines = results.flat_map(&:remarks).map { |remark| "- #{remark}" }
      lines.empty? ? [] : lines + [""]
    end

    # Of the CPU group, over the fastest other contender of each pattern.
    def geometric_means
      key = "cpu_nanoseconds_per_operation"
      names = @results.flat_map { |result| result.candidates.map(&:name) }.uniq
      names.filter_map do |name|
        ratios = @results.select { |result| result.probe.group == :cpu }.filter_map do |result|
          figure = result.probe.figures.find { |one| one.key == key }
          figure && result.ratio(figure, name)
        end
        next if ratios.size < 2

        format("CPU of %s over the fastest other contender of each of %d patterns of one thread, " \
               "geometric mean: %.2f (goal: at most 1.00).\n",
               name, ratios.size, Math.exp(ratios.sum { |ratio| Math.log(ratio) } / ratios.size))
      end
    end

    def goals
      rows = @results.reject(&:skipped).flat_map do |result|
        result.candidates.flat_map { |candidate| goals_of(result, candidate.name) }
      end
      return [] if rows.empty?

      head = ["what", "culet", "goal", "reached", "best other", "command"]
      ["## Goals\n\n#{Bench::Table.markdown(head, rows)}"]
    end

    def goals_of(result, name)
      result.probe.figures.select(&:goal).map do |figure|
        best = result.best_other(figure)
        ["#{result.probe.about}: #{figure.label}", cell(result, figure, name), figure.goal.text(figure),
         verdict(result.reached?(figure, name)), best ? "#{cell(result, figure, best)} (#{best})" : "-",
         "`bench/allocator/run #{result.probe.name}`"]
      end
    end
  end
end
