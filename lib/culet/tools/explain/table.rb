# frozen_string_literal: true

require_relative "../../text/view"
require_relative "../../model/diagnosis"

module Culet
  module Explain
    # A diagnosis for a terminal.
    class Table < Text::View
      private

      def diagnosis = @subject

      def sections
        [heading, wrap(capital(diagnosis.sentence)), next_step, evidence, fit, remedies, note_lines(diagnosis.remarks)]
      end

      def heading
        observation = diagnosis.observation
        first = observation.members.first
        others = observation.members.size - 1
        more = " and #{count(others, "other process", "other processes")}" if others.positive?
        bold("Process #{first.pid} (#{printable(first.name)})#{more}, #{observation.seconds.round} s: " \
             "#{size(observation.total_bytes)}")
      end

      def capital(text) = text[0].upcase + text[1..] + (text.end_with?(".") ? "" : ".")

      def next_step = diagnosis.next_step && wrap("Next: #{diagnosis.next_step}")

      def evidence
        rows = diagnosis.evidence.map { |one| [one.title, one.amount, one.interval] }
        bounds = ["95 % interval", rows.map(&:last), true] if rows.any?(&:last)
        grid([["what decides", rows.map(&:first), true], ["value", rows.map { |row| row[1] }, false], bounds].compact)
      end

      def fit = diagnosis.fit && wrap("#{diagnosis.fit.sentence}.")

      def range(low, high) = "#{size(low)} to #{size(high)}"

      def remedies
        none = wrap("No change of a setting would make it much smaller.")
        return [none, *others].join("\n") if diagnosis.remedies.empty?

        lines = diagnosis.remedies.each_with_index.map { |one, at| remedy(one, at + 1) }
        "#{bold("What to do, the largest saving first")}\n#{[*lines, *others].join("\n")}"
      end

      def others
        return if diagnosis.others.empty?

        wrap("Too small to be worth a change, or not to be predicted: #{diagnosis.others.join(", ")}.")
      end

      def remedy(one, number)
        saves = "#{size(one.saves_bytes)} (#{range(one.low_bytes, one.high_bytes)})"
        [wrap("#{number}. #{capital(printable(one.text)).chomp(".")}: saves #{saves}", indent: 3),
         "     #{printable(one.line)}",
         wrap("   in #{printable(one.file)}; costs: #{one.cost}; to undo: #{one.undo}", indent: 3)].join("\n")
      end
    end
  end
end
