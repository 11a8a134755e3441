# frozen_string_literal: true

require_relative "../../render/html_page"
require_relative "verdicts"

module Culet
  module Strings
    # The findings as a page without a script. Contents of strings are escaped.
    class Html < HtmlPage
      FOLDER = File.expand_path("html", __dir__)

      # @param top [Integer] number of groups, gems, files and lines
      def initialize(findings, top:)
        super()
        @findings = findings
        @top = top
      end

      private

      attr_reader :findings, :top

      def verdicts = Verdicts.new(findings).list

      def title = "Strings of #{findings.source.name}"

      def mega(bytes) = super(bytes, digits: 3)

      def places
        return {} unless findings.sites?

        { "gem" => findings.gems, "file" => findings.files, "line" => findings.lines }
          .transform_values { |list| list.select { |place| place.gain_bytes.positive? }.first(top) }
          .reject { |_, list| list.empty? }
      end

      def notes = [findings.source.note, *findings.source.problems].compact
    end
  end
end
