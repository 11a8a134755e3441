# frozen_string_literal: true

require_relative "../../../text/view"

module Culet
  module Cow
    module Experiment
      # The document of an experiment for a terminal.
      class Table < Text::View
        # heading, figure, unit, whether the interval is printed too
        COLUMNS = [["1st GC s", "gc_first_seconds", 1.0, true], ["2nd GC s", "gc_second_seconds", 1.0, true],
                   ["parent RSS MB", "parent_rss_bytes", 1e6], ["shared", "parent_shared_bytes", 1e6],
                   ["private", "parent_private_bytes", 1e6], ["child RSS MB", "child_rss_bytes", 1e6],
                   ["shared", "child_shared_bytes", 1e6], ["private", "child_private_bytes", 1e6],
                   ["PSS at fork MB", "forked_pss_bytes", 1e6], ["PSS at end MB", "total_pss_bytes", 1e6, true]].freeze
        TITLES = { "gc_first_seconds" => "first collection", "gc_second_seconds" => "second collection",
                   "total_pss_bytes" => "PSS of both processes",
                   "child_private_bytes" => "private memory of the child" }.freeze
        private_constant :COLUMNS, :TITLES

        private

        def document = @subject

        def sections = [("The experiment was interrupted." unless document["complete"]), variants, exclusions, note]

        def variants
          document["results"].group_by { |result| result["variant"] }.map do |name, results|
            [bold(name), table(results), *verdicts(name)].join("\n")
          end
        end

        def table(results)
          columns = COLUMNS.map do |heading, figure, unit, interval|
            [heading, results.map { |result| cell(result, figure, unit, interval) }, false]
          end
          grid([["", results.map { |result| result["contender"] }, true], *columns])
        end

        def cell(result, figure, unit, interval)
          values = result["summary"][figure].values_at("median", "low", "high")
          median, low, high = values.map { |value| value && value / unit }
          interval ? Text::Numbers.interval(median, low, high) : Text::Numbers.significant(median)
        end

        def verdicts(variant)
          shown = document["comparisons"].select do |one|
            one["variant"] == variant && one["verdict"] != Statistics::NONE
          end
          shown.group_by { |one| one.values_at("contender", "baseline") }.map do |(contender, baseline), list|
            parts = list.map { |one| "#{TITLES.fetch(one["metric"])} #{Text::Numbers.ratio(one["ratio"])}" }
            wrap("#{contender} relative to #{baseline}: #{parts.join("; ")}.", indent: 2)
          end
        end

        def exclusions
          sentences = document["excluded"].map { |one| "#{one["contender"]}, #{one["variant"]}: #{one["reason"]}" }
          note_lines(sentences, "excluded")
        end

        def note
          return if document["results"].empty?

          wrap("#{number(document["strings"])} strings. " \
               "RSS, shared and private bytes are measured after the second collection. " \
               "PSS divides shared pages among the processes that map them. MB = 1,000,000 bytes. " \
               "Medians of #{count(document["runs"], "run")}, " \
               "95 % bootstrap intervals in parentheses.#{" #{few}" if few}")
        end

        def few = (Statistics.too_few(document["runs"]) if document["results"].size > 1)
      end
    end
  end
end
