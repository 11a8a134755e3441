# frozen_string_literal: true

require "json"
require_relative "result_file"
require_relative "table"

module Bench
  # The goals of docs/benchmarks/goals.json, each beside what the result files say.
  #
  # A goal has "goal", "unit", "most" or "least", "family" and "figures". A figure has a "label" and either "result"
  # (file, subject, metric, contender), with "to" (a contender, [subject, contender], or "best") where it is a ratio, or
  # "value" without a result file. "show" is "range" for many figures, or "mean" for their geometric mean. "misses" is
  # how many figures may miss a goal that is reached.
  class Goals
    PATH = File.join(ResultFile::FOLDER, "goals.json")

    # @param files [Hash{String => ResultFile}]
    # @param goals [Array<Hash>]
    def initialize(files, goals = JSON.parse(File.read(PATH, encoding: Encoding::UTF_8)))
      @files = files
      @goals = goals
    end

    # @return [String] a Markdown table
    def to_s
      Table.markdown(["goal", "stands at", "reached"], @goals.map { |goal| line(goal) }, left: 3)
    end

    private

    def line(goal)
      figures = goal.fetch("figures").map { |figure| [figure["label"], value(figure)] }
      figures = [mean(figures)] if goal["show"] == "mean"
      reached = figures.count { |_, value| within?(goal, value) }
      ["[#{goal.fetch("goal")}](##{goal.fetch("family")})", text(goal, figures), verdict(goal, reached, figures.size)]
    end

    def verdict(goal, reached, all)
      count = "#{reached} of #{all}"
      return "#{all - reached <= goal["misses"] ? "yes" : "**no**"}, #{count}" if goal["misses"]

      { all => "yes", 0 => "**no**" }.fetch(reached, count)
    end

    def mean(figures) = ["geometric mean", Math.exp(figures.sum { |_, value| Math.log(value) } / figures.size)]

    def text(goal, figures)
      return figures.map(&:last).minmax.map { |value| number(value) }.join(" to ") if goal["show"] == "range"

      figures.map { |label, value| [label, number(value), goal["unit"]].compact.join(" ") }.join(", ")
    end

    # What is shown is judged, so that no figure seems to contradict its verdict.
    def within?(goal, value)
      shown = value.round(digits(value))
      goal.key?("least") ? shown >= goal["least"] : shown <= goal.fetch("most")
    end

    def value(figure)
      return figure.fetch("value") if figure.key?("value")

      file, subject, metric, contender = figure.fetch("result")
      own = find(file, subject, metric, contender)
      return own.median unless figure.key?("to")
      return own.median.fdiv(best(file, own).median) if figure["to"] == "best"

      own.median.fdiv(find(file, *[subject, *figure["to"]].last(2).insert(1, metric)).median)
    end

    def find(file, *names)
      @files.fetch(file).find(*names) ||
        raise(KeyError, "#{file}.json has no result #{names.join(", ")}; goals.json names it")
    end

    def best(file, own)
      same = @files.fetch(file).rows.select { |row| [row.subject, row.metric] == [own.subject, own.metric] }
      Table.best(same - [own])
    end

    def number(value)
      return Culet::Text::Numbers.grouped(value.round) if value.is_a?(Integer) || value >= 99.95

      Culet::Text::Numbers.decimal(value, digits(value))
    end

    def digits(value)
      return 1 if value >= 9.995

      value.between?(0.98, 1.02) ? 3 : 2
    end
  end
end
