# frozen_string_literal: true

module Bench
  # The results of a session in Markdown: tables that compare culet with the best other contender, and what is missing.
  class Tables
    # @param results [Array<Result>]
    # @param sections [Hash{String => Array<Row>}] the rows of each table by its heading
    def initialize(results, sections)
      @results = results
      @sections = sections
    end

    def to_s = [*tables, *remarks].join("\n")

    private

    def tables
      candidate = @results.flat_map(&:candidates).last&.name
      @sections.reject { |_, rows| rows.empty? }.map do |heading, rows|
        "## #{heading}\n\n#{Table.new(rows, ratio: candidate && [candidate, nil]).by_contender}"
      end
    end

    def remarks = @results.flat_map(&:remarks).map { |remark| "- #{remark}" }
  end
end
