# frozen_string_literal: true

require "digest"
require "erb"
require "json"
require_relative "../../model/levels"

module Culet
  module Live
    # The page: one HTML file with styles and scripts inside. It asks the server it comes from for moments, and nothing
    # else for anything. Names and titles reach it as data, and the script only ever inserts them as text.
    class Page
      PARTS = File.expand_path("page", __dir__)
      SHARED = File.expand_path("../../render/map/assets", __dir__)
      OF_THE_MAP = %w[theme words tip].freeze
      OWN = %w[figures store levels chart stacks timeline events table main].freeze
      SCRIPTS = ["#{PARTS}/uplot/uPlot.iife.min.js", *OF_THE_MAP.map { |name| "#{SHARED}/#{name}.js" },
                 *OWN.map { |name| "#{PARTS}/#{name}.js" }].freeze
      STYLES = ["#{PARTS}/uplot/uPlot.min.css", "#{PARTS}/page.css"].freeze
      private_constant :PARTS, :SHARED, :OF_THE_MAP, :OWN, :SCRIPTS, :STYLES

      # @param subject [String] what is watched
      # @param every_seconds [Float] from one moment to the next
      # @param recording [Boolean] whether a recording is played
      # @param notes [Array<String>] sentences about what is not shown
      def initialize(subject:, every_seconds:, recording: false, notes: [])
        @subject = subject
        @settings = { "every_seconds" => every_seconds, "recording" => recording, "levels" => Levels::TITLES }
        @notes = notes
      end

      # @return [String] the page
      def to_s = @to_s ||= ERB.new(asset("#{PARTS}/page.html.erb"), trim_mode: "-").result(binding)

      # @return [String] its Content-Security-Policy
      def policy
        "default-src 'none'; script-src '#{digest(script)}'; style-src '#{digest(style)}'; connect-src 'self'; " \
          "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
      end

      private

      def h(text) = ERB::Util.html_escape(text)

      def asset(path) = File.read(path, encoding: Encoding::UTF_8)

      def title = "#{@subject.tr("\n", " ")}: culet live"

      # One function around all files: only `culetLive` is global.
      def script
        @script ||= "(function () {\n\"use strict\";\n#{SCRIPTS.map { |path| asset(path) }.join("\n")}\n}());"
      end

      def style = @style ||= STYLES.map { |path| asset(path) }.join("\n")

      def digest(text) = "sha256-#{Digest::SHA256.base64digest(text)}"
    end
  end
end
