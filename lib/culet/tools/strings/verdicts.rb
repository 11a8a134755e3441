# frozen_string_literal: true

require_relative "../gain"
require_relative "../report/verdicts"
require_relative "../../text/numbers"
require_relative "../../text/size"

module Culet
  module Strings
    # What the findings mean, in words.
    class Verdicts
      Verdict = Report::Verdict
      private_constant :Verdict

      # @param findings [Findings]
      def initialize(findings)
        @findings = findings
      end

      # @return [Boolean] whether sharing would pay
      def worth? = gain(@findings.shareable_bytes).worth?

      # @return [Array<Report::Verdict>]
      def list
        return [verdict("strings", "there are none")] if @findings.strings.zero?

        [sharing, *(worth? ? [largest, tracing] : []), slack].compact
      end

      private

      def gain(bytes) = Gain.new(bytes, of: @findings.string_bytes, kind: :code)

      def bytes(count) = Text::Size.human(count)

      def percent(count) = "#{format("%.1f", 100 * count.fdiv(@findings.string_bytes))} %"

      def sharing
        total = @findings.shareable_bytes
        text = "#{bytes(total)} of #{bytes(@findings.string_bytes)} (#{percent(total)}) would go away if equal strings were one " \
               "(#{bytes(@findings.duplicate_bytes)}) and ends of others lay in their buffers (#{bytes(@findings.suffix_bytes)})"
        return verdict("nothing to gain", text) if total.zero?

        verdict(worth? ? "sharing" : "little to gain", "#{text}#{gain(total).remark}")
      end

      def largest
        group = @findings.groups.first or return

        who = group.sites.first
        verdict("largest", "#{Text::Numbers.count(group.count, "string")} #{group.duplicate? ? "equal to" : "that end"} #{group.kept} hold " \
                           "#{bytes(group.held_bytes)}; #{bytes(group.gain_bytes)} would go away#{"; most are from #{who.first}" if who}", group.remedy)
      end

      def tracing
        return if @findings.sites?

        verdict("who makes them", "allocations were not traced, so it is not known",
                "ObjectSpace.trace_object_allocations_start early in the program, or `culet strings --trace -- COMMAND`")
      end

      def slack
        total = @findings.capacity_slack_bytes
        return unless gain(total).worth?

        verdict("capacity", "buffers hold #{bytes(total)} (#{percent(total)}) that no text fills: they grew while strings were built",
                "string + \"\" of what is kept is a copy that fits; dup and -string keep the large buffer")
      end

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
