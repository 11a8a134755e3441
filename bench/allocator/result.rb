# frozen_string_literal: true

module AllocatorBench
  # The runs of one probe beside its goals.
  class Result < Bench::Result
    # @return [Probe]
    alias probe subject

    # @return [Boolean, nil] nil without a goal, or where it cannot be judged
    def reached?(figure, name)
      own = value(figure, name)
      figure.goal.reached?(own, figure, others(figure)) if own && figure.goal
    end

    # @return [Hash] for --json
    def to_h
      { "probe" => probe.name, "about" => probe.about, "skipped" => skipped, "excluded" => @reasons, "runs" => @runs,
        "figures" => probe.figures.map { |figure| figure_h(figure) } }
    end

    private

    def figure_h(figure)
      { "key" => figure.key, "label" => figure.label,
        "medians" => @contenders.to_h { |contender| [contender.name, value(figure, contender.name)] },
        "best_other" => best_other(figure), "goal" => figure.goal&.text(figure),
        "culet" => candidates.to_h do |one|
          [one.name, { "ratio" => ratio(figure, one.name), "reached" => reached?(figure, one.name) }]
        end }
    end
  end
end
