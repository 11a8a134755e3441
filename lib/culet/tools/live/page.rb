# frozen_string_literal: true

require_relative "../../model/levels"
require_relative "../../render/html_page"

module Culet
  module Live
    # The page, which asks the server it comes from for moments, and nothing else for anything. Names and titles reach
    # it as data.
    class Page < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      OWN = %w[figures store levels chart stacks timeline events table main].freeze
      SCRIPTS = ["uplot/uPlot.iife.min", *COMMON, *OWN].freeze
      STYLES = ["uplot/uPlot.min.css", EXPLORER, LEVELS, "page.css"].freeze
      private_constant :OWN

      # @param subject [String] what is watched
      # @param every_seconds [Float] from one moment to the next
      # @param recording [Boolean] whether a recording is played
      # @param notes [Array<String>] sentences about what is not shown
      def initialize(subject:, every_seconds:, recording: false, notes: [])
        super()
        @subject = subject
        @settings = { "every_seconds" => every_seconds, "recording" => recording, "levels" => Levels::TITLES }
        @notes = notes
      end

      # @return [String] its Content-Security-Policy
      def policy
        "default-src 'none'; script-src '#{digest(script)}'; style-src '#{digest(style)}'; connect-src 'self'; " \
          "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
      end

      private

      def title = "#{@subject.tr("\n", " ")}: culet live"
    end
  end
end
