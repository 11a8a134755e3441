# frozen_string_literal: true

require_relative "../../model/gain"
require_relative "../../model/snapshot_verdicts"
require_relative "../../text/numbers"
require_relative "../../text/size"

module Culet
  module Strings
    # Conclusions from the findings, in sentences.
    class Verdicts
      def initialize(findings)
        @findings = findings
      end

      # @return [Boolean] whether sharing would be worth it
      def worth? = gain(@findings.shareable_bytes).worth?

      # @return [Array<Verdict>]
      def list
        return [verdict("strings", "no strings were found")] if @findings.strings.zero?

        [sharing, *(worth? ? [largest, tracing] : []), slack].compact
      end

      private

      def gain(bytes) = Gain.new(bytes, of: @findings.string_bytes, kind: :code)

      def bytes(count) = Text::Size.human(count)

      def percent(count) = Text::Numbers.percent(count, @findings.string_bytes)

      def sharing
        total = @findings.shareable_bytes
        text = "sharing would save #{bytes(total)} of #{bytes(@findings.string_bytes)} (#{percent(total)}): " \
               "#{bytes(@findings.duplicate_bytes)} of duplicates and #{bytes(@findings.suffix_bytes)} of suffixes"
        return verdict("nothing to gain", text) if total.zero?

        verdict(worth? ? "sharing" : "little to gain", "#{text}#{gain(total).remark}")
      end

      def largest
        group = @findings.groups.first or return

        site = group.sites.first
        kind = group.duplicate? ? "equal to" : "at the end of"
        verdict("largest group", "#{Text::Numbers.count(group.count, "string")} #{kind} #{group.kept}: " \
                                 "#{bytes(group.held_bytes)}, #{bytes(group.gain_bytes)} savable" \
                                 "#{"; most are from #{site.first}" if site}", group.remedy)
      end

      def tracing
        return if @findings.sites?

        verdict("allocation sites", "unknown, because allocations were not traced",
                "call ObjectSpace.trace_object_allocations_start early in the program, " \
                "or use `culet strings --trace -- COMMAND`")
      end

      def slack
        total = @findings.capacity_slack_bytes
        return unless gain(total).worth?

        verdict("capacity", "#{bytes(total)} (#{percent(total)}) of buffers are unused: " \
                            "they grew while strings were built",
                "store string + \"\", a copy of the exact size; dup and -string keep the large buffer")
      end

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
