# frozen_string_literal: true

module Bench
  # The runs of one subject (a probe or a program) under every contender.
  class Result
    attr_reader :subject

    # @param subject [#name, #figures]
    def initialize(subject, contenders)
      @subject = subject
      @contenders = contenders
      @runs = contenders.to_h { |contender| [contender.name, []] }
      @reasons = {}
      @skipped = nil
    end

    # @return [String, nil] why the subject was not run
    attr_accessor :skipped

    def add(contender, outcome)
      outcome.figures ? @runs.fetch(contender.name) << outcome.figures : @reasons[contender.name] = outcome.reason
    end

    # @return [Boolean] whether one of its runs failed
    def out?(contender) = @reasons.key?(contender.name)

    # @return [Array<Contender>] culet, or several builds of it
    def candidates = @contenders.select(&:culet?)

    # @return [Array<Bench::Row>] for --out
    def rows
      subject.figures.product(@contenders.map(&:name)).filter_map do |figure, name|
        next if @reasons.key?(name)

        Row.of(@runs.fetch(name).map { |run| run[figure.key] },
               factor: figure.factor, subject: subject.name, contender: name, metric: figure.label,
               unit: figure.unit == :times ? "ratio" : figure.unit_name)
      end
    end

    # @return [Array<String>] sentences about what is missing
    def remarks
      return ["#{subject.name} was not run: #{skipped}."] if skipped

      @reasons.map { |name, reason| "#{subject.name}, #{name}: no result, #{reason}." }
    end
  end
end
