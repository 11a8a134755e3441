# frozen_string_literal: true

require "culet/text/numbers"

module Bench
  # Rows of result files as a Markdown table.
  class Table
    Numbers = Culet::Text::Numbers
    # Metrics of which more is better; of the others less is.
    RATES = /\Arequests\z|per second|per CPU second|shared|stopped|done\z/

    # @param ratio [Array(String, String), nil] contenders whose ratio is a column of its own; a second one of nil is
    #   the best of the others
    def initialize(rows, ratio: nil)
      @rows = rows
      @ratio = ratio
    end

    # Which contender is best.
    #
    # @param rows [Array<Row>] of one metric
    # @return [Row, nil]
    def self.best(rows) = rows.min_by { |row| row.metric.match?(RATES) ? -row.median : row.median }

    # @return [String] its figure: counts whole, ratios close to 1 with three decimals
    def self.number(row, interval: false)
      if interval && Numbers.significant(row.low) != Numbers.significant(row.high)
        low = row.low
        high = row.high
      end
      return Numbers.ratio({ "median" => row.median, "low" => low, "high" => high }, apart: true) if row.unit == "ratio"

      row.median.is_a?(Integer) && !low ? Numbers.grouped(row.median) : Numbers.interval(row.median, low, high)
    end

    # @param head [Array<String>]
    # @param lines [Array<Array<String>>]
    # @param left [Integer] number of columns of text, the first ones
    # @return [String]
    def self.markdown(head, lines, left: 1)
      alignment = head.each_index.map { |index| index < left ? "---" : "---:" }
      [head, alignment, *lines].map { |cells| "| #{cells.join(" | ")} |\n" }.join
    end

    # @return [String] a column for each contender, a line for each subject and metric
    def by_contender
      names = uniq(:contender)
      unit = one(:unit)
      metric = one(:metric)
      head = [label(metric, unit), *names, *("#{@ratio.first} to #{@ratio.last || "the best other"}" if @ratio)]
      lines = @rows.group_by { |row| [row.subject, row.metric] }.map do |(subject, name), rows|
        best = self.class.best(rows) if rows.size > 1
        cells = names.map { |contender| cell(rows.find { |row| row.contender == contender }, best) }
        [label(subject, *(name unless metric), *(rows.first.unit unless unit)), *cells, *(ratio(rows) if @ratio)]
      end
      markdown(head, lines)
    end

    # @return [String] a column for each metric, a line for each subject and contender of several
    def by_metric
      metrics = @rows.map { |row| [row.metric, row.unit] }.uniq
      names = %i[subject contender].reject { |member| one(member) }
      lines = @rows.group_by { |row| names.map { |name| row[name] } }.map do |key, rows|
        [*key, *metrics.map { |metric, unit| cell(rows.find { |row| [row.metric, row.unit] == [metric, unit] }, nil) }]
      end
      markdown([*names.map(&:to_s), *metrics.map { |pair| label(*pair) }], lines, left: names.size)
    end

    private

    def label(*parts) = (parts - [nil, "", "ratio"]).join(", ")
    def uniq(member) = @rows.map(&member).uniq
    def one(member) = uniq(member).then { |all| all.first if all.size == 1 }

    def cell(row, best)
      return "–" unless row

      text = self.class.number(row, interval: true)
      row.median == best&.median ? "**#{text}**" : text
    end

    def ratio(rows)
      own = rows.find { |row| row.contender == @ratio.first }
      other = @ratio.last ? rows.find { |row| row.contender == @ratio.last } : self.class.best(rows - [own])
      return "–" unless own && other&.median&.positive?

      "#{Numbers.ratio({ "median" => own.median.fdiv(other.median) })}#{" (#{other.contender})" unless @ratio.last}"
    end

    def markdown(...) = self.class.markdown(...)
  end
end
