# frozen_string_literal: true

require_relative "verdicts"

module Culet
  module Strings
    # The findings as one JSON object.
    class Document
      # @param top [Integer] number of groups, gems, files and lines
      def initialize(findings, top:)
        @findings = findings
        @top = top
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "source" => @findings.source.name, "reading" => @findings.source.reading, "strings" => @findings.strings,
          "string_bytes" => @findings.string_bytes, "asked_bytes" => @findings.asked_bytes,
          "duplicate_bytes" => @findings.duplicate_bytes, "suffix_bytes" => @findings.suffix_bytes,
          "shareable_bytes" => @findings.shareable_bytes, "copies" => @findings.copies,
          "suffixes" => @findings.suffixes, "slot_slack_bytes" => @findings.slot_slack_bytes,
          "capacity_slack_bytes" => @findings.capacity_slack_bytes,
          "places" => @findings.places.transform_values { |sum| sum(sum) }, "interned" => sum(@findings.interned),
          "frozen" => sum(@findings.frozen), "roots" => sum(@findings.roots), "untold" => sum(@findings.untold),
          "group_count" => @findings.group_count, "groups" => @findings.groups.first(@top).map(&:to_h),
          "shared_with" => @findings.shared_with.map { |root| root(root) }, **sites, "worth_it" => verdicts.worth?,
          "verdicts" => verdicts.list.map { |one| one.to_h.transform_keys(&:to_s) },
          "problems" => @findings.source.problems }
      end

      private

      def verdicts = @verdicts ||= Verdicts.new(@findings)

      def sum(one) = { **one.to_h.transform_keys(&:to_s), "held_bytes" => one.held_bytes }

      def root(one)
        { "strings" => one.count, "bytes" => one.owner&.bytes, "held_bytes" => one.owner&.held_bytes,
          "sample" => one.owner&.text }
      end

      def sites
        return { "traced" => false, "gems" => [], "files" => [], "lines" => [] } unless @findings.sites?

        { "traced" => true, "gems" => places(@findings.gems), "files" => places(@findings.files),
          "lines" => places(@findings.lines) }
      end

      def places(list) = list.first(@top).map { |place| place.to_h.transform_keys(&:to_s) }
    end
  end
end
