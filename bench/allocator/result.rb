# frozen_string_literal: true

module AllocatorBench
  # The runs of one probe under every contender.
  class Result
    attr_reader :probe

    # @param probe [Probe]
    # @param contenders [Array<Contender>]
    def initialize(probe, contenders)
      @probe = probe
      @contenders = contenders
      @runs = contenders.to_h { |contender| [contender.name, []] }
      @reasons = {}
      @skipped = nil
    end

    # @return [Hash{String => String}] excluded contenders, with the reason
    attr_reader :reasons

    # @return [String, nil] why the probe was not run
    attr_accessor :skipped

    # @param contender [Contender]
    # @param outcome [Trial::Outcome]
    def add(contender, outcome)
      outcome.figures ? @runs.fetch(contender.name) << outcome.figures : @reasons[contender.name] = outcome.reason
    end

    # @return [Boolean] whether one of its runs failed
    def out?(contender) = @reasons.key?(contender.name)

    # @return [Numeric, nil] the median over the runs
    def value(figure, name)
      return if @reasons.key?(name)

      values = @runs.fetch(name).filter_map { |figures| figures[figure.key] }.sort
      return if values.empty?

      middle = values.size / 2
      values.size.odd? ? values[middle] : (values[middle - 1] + values[middle]) / 2.0
    end

    # @return [Hash{String => Numeric}] of the contenders except culet
    def others(figure)
      @contenders.reject(&:culet?).filter_map do |contender|
        (value = value(figure, contender.name)) && [contender.name, value]
      end.to_h
    end

    # @return [Array<Contender>] culet, or several builds of it
    def candidates = @contenders.select(&:culet?)

    # @return [String, nil] the best contender except culet
    def best_other(figure) = others(figure).key(figure.best(others(figure).values))

    # @return [Float, nil] culet's figure over that of the best other contender
    def ratio(figure, name)
      own = value(figure, name)
      best = figure.best(others(figure).values)
      own.to_f / best if own && best&.positive?
    end

    # @return [Boolean, nil] nil without a goal, or where it cannot be judged
    def reached?(figure, name)
      own = value(figure, name)
      figure.goal.reached?(own, figure, others(figure)) if own && figure.goal
    end

    # @return [Array<Bench::Row>] for --out
    def rows
      probe.figures.product(@contenders.map(&:name)).filter_map do |figure, name|
        next if @reasons.key?(name)

        Bench::Row.of(@runs.fetch(name).map { |run| run[figure.key] },
                      factor: figure.factor, subject: probe.name, contender: name, metric: figure.label,
                      unit: figure.unit == :times ? "ratio" : figure.unit_name)
      end
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
