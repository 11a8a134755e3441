# frozen_string_literal: true

require_relative "../../model/diagnosis"
require_relative "../../model/levels"
require_relative "../../render/html_page"
require_relative "../../render/time_chart"
require_relative "../../text/lines"
require_relative "table"

module Culet
  module Explain
    # A diagnosis as a page: the verdict, the levels over time, the evidence, the remedies.
    class Html < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      STYLES = [EXPLORER, LEVELS, "page.css"].freeze
      # Levels smaller than this part of the picture are not drawn.
      LEAST_SHARE = 0.004
      private_constant :LEAST_SHARE

      # @param diagnosis [Diagnosis]
      def initialize(diagnosis)
        super()
        @diagnosis = diagnosis
      end

      private

      attr_reader :diagnosis

      def observation = diagnosis.observation

      def first = observation.members.first

      def title = "#{Text::Lines.printable(first.name)}: why #{size(observation.total_bytes)}"

      def verdict = diagnosis.sentence.then { |text| text[0].upcase + text[1..] }

      def lead
        "#{count(observation.members.size, "process", "processes")}, #{size(observation.total_bytes)}, " \
          "watched for #{observation.seconds.round} s"
      end

      # Commands that show more of the process.
      def commands
        pid = drawn&.pid || first.pid
        { "culet map #{pid} --html map.html" => "each page of its memory",
          "culet profile #{pid} --html profile.html" => "the code that allocated what it holds",
          "culet retain #{pid} --html retain.html" => "what keeps its objects",
          "culet cow #{first.pid}" => "what the processes share" }
      end

      def processes
        observation.members.map do |member|
          [member.pid, Text::Lines.printable(member.name), size(member.rss_bytes), size(member.private_bytes)]
        end
      end

      def drawn = @drawn ||= observation.processes.max_by { |process| process.readings.size }

      def readings = drawn ? drawn.readings : []

      def top = @top ||= readings.map { |one| one.levels.values.select(&:positive?).sum }.max.to_f

      # @return [Hash{String => String}] title by name of those that are drawn, the lowest first
      def levels
        @levels ||= Levels::TITLES.select do |name, _|
          readings.any? { |one| one.levels.fetch(name) > LEAST_SHARE * top }
        end
      end

      # @return [String] the levels on top of each other
      def chart
        chart = TimeChart.new(seconds: readings.last.at, bytes: top)
        edge = readings.map { |one| [one.at, 0] }
        areas = levels.map do |name, title|
          lower = edge
          edge = lower.zip(readings).map { |(at, bytes), one| [at, bytes + [one.levels.fetch(name), 0].max] }
          %(<polygon style="fill: var(--#{name})" points="#{chart.points(edge + lower.reverse)}">) +
            "<title>#{h title}</title></polygon>"
        end
        chart.svg("Resident memory by level over #{observation.seconds.round} seconds", areas)
      end
    end
  end
end
