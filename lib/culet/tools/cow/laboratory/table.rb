# frozen_string_literal: true

require_relative "../../../text/numbers"
require_relative "../../../text/table"
require_relative "../../../text/lines"

module Culet
  module Cow
    module Laboratory
      # The document of an experiment for a terminal.
      class Table
        # heading => [figure, how much of its unit is shown]
        COLUMNS = { "1st GC s" => ["gc_first_seconds", 1.0], "2nd GC s" => ["gc_second_seconds", 1.0], "parent RSS MB" => ["parent_rss_bytes", 1e6],
                    "shared" => ["parent_shared_bytes", 1e6], "private" => ["parent_private_bytes", 1e6], "child RSS MB" => ["child_rss_bytes", 1e6],
                    "shared " => ["child_shared_bytes", 1e6], "private " => ["child_private_bytes", 1e6], "PSS at fork MB" => ["forked_pss_bytes", 1e6],
                    "PSS at end MB" => ["total_pss_bytes", 1e6] }.freeze
        # Of these the interval is shown too.
        WITH_INTERVAL = ["1st GC s", "2nd GC s", "PSS at end MB"].freeze
        TITLES = { "gc_first_seconds" => "the first collection", "gc_second_seconds" => "the second", "total_pss_bytes" => "both processes together (PSS)",
                   "child_private_bytes" => "what the child has for itself" }.freeze
        private_constant :COLUMNS, :WITH_INTERVAL, :TITLES

        # @param document [Hash] of Engine
        # @param color [Boolean] whether to use ANSI colours
        # @param unicode [Boolean] whether lines beyond ASCII can be shown
        def initialize(document, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
          @document = document
          @color = color
          @unicode = unicode
        end

        # @return [String]
        # @raise [Culet::Error] when the terminal-table gem is not installed
        def to_s
          parts = [("The experiment was stopped before its end." unless @document["complete"]), *variants, exclusions, note].compact
          text = "#{parts.join("\n\n")}\n"
          @unicode ? text : text.tr("–…", "-.")
        end

        private

        def variants
          @document["results"].group_by { |result| result["variant"] }.map { |name, results| [bold(name), table(results), *verdicts(name)].join("\n") }
        end

        def table(results)
          columns = COLUMNS.map { |heading, (figure, unit)| [heading.strip, results.map { |result| cell(result, heading, figure, unit) }, false] }
          Text::Table.render([["", results.map { |result| result["contender"] }, true], *columns], unicode: @unicode)
        end

        def cell(result, heading, figure, unit)
          median, low, high = result["summary"][figure].values_at("median", "low", "high").map { |value| value && value / unit }
          WITH_INTERVAL.include?(heading) ? Text::Numbers.interval(median, low, high) : Text::Numbers.significant(median)
        end

        def verdicts(variant)
          shown = @document["comparisons"].select { |one| one["variant"] == variant && one["verdict"] != Compare::Statistics::NONE }
          shown.group_by { |one| one.values_at("contender", "baseline") }.map do |(contender, baseline), list|
            parts = list.map { |one| "#{TITLES.fetch(one["metric"])} #{Text::Numbers.ratio(one["ratio"])}" }
            Text::Lines.wrap("#{contender}, times #{baseline}: #{parts.join("; ")}.", indent: 2)
          end
        end

        def exclusions
          lines = @document["excluded"].map { |one| Text::Lines.wrap("left out: #{one["contender"]}, #{one["variant"]}: #{one["reason"]}", indent: 2) }
          lines.join("\n") if lines.any?
        end

        def note
          return if @document["results"].empty?

          Text::Lines.wrap("#{Text::Numbers.grouped(@document["strings"])} strings. RSS, shared and private bytes are those after the second collection. PSS shares out what is shared: " \
                             "parent's and child's add up to what both take. MB = 1,000,000 bytes. Medians of #{Text::Numbers.count(@document["runs"], "run")}, in parentheses 95 % " \
                             "bootstrap intervals.#{" #{few}" if few}")
        end

        def few = (Compare::Statistics.too_few(@document["runs"]) if @document["results"].size > 1)

        def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
      end
    end
  end
end
