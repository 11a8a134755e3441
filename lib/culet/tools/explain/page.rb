# frozen_string_literal: true

require_relative "../../model/diagnosis"
require_relative "../../model/levels"
require_relative "../../render/html_page"
require_relative "../../text/lines"
require_relative "table"

module Culet
  module Explain
    # A diagnosis as a page: the verdict, the levels over time, the evidence, the remedies.
    class Html < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      STYLES = [EXPLORER, LEVELS, "page.css"].freeze
      # Size of the picture in user units of SVG.
      WIDTH = 900
      HEIGHT = 260
      LEFT = 76
      BOTTOM = 24
      # Steps of the axis.
      STEPS = 4
      # Levels smaller than this part of the picture are not drawn.
      LEAST_SHARE = 0.004
      private_constant :WIDTH, :HEIGHT, :LEFT, :BOTTOM, :STEPS, :LEAST_SHARE

      # One area of the picture.
      Area = Struct.new(:name, :title, :points, :bytes)
      private_constant :Area

      # @param diagnosis [Diagnosis]
      def initialize(diagnosis)
        super()
        @diagnosis = diagnosis
      end

      private

      attr_reader :diagnosis

      # A template cannot read the constants of this class.
      def width = WIDTH

      def depth = HEIGHT

      def left = LEFT

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

      # @return [Array<Area>] of the picture, the lowest first
      def areas
        names = Levels::TITLES.keys.select { |name| readings.any? { |one| one.levels.fetch(name) > LEAST_SHARE * top } }
        base = Array.new(readings.size, 0)
        names.map do |name|
          upper = readings.each_with_index.map { |one, at| base[at] + [one.levels.fetch(name), 0].max }
          points = outline(upper, base)
          base = upper
          Area.new(name, Levels::TITLES.fetch(name), points, readings.last.levels.fetch(name))
        end
      end

      def outline(upper, lower)
        forth = upper.each_with_index.map { |bytes, at| point(readings[at].at, bytes) }
        back = lower.each_with_index.map { |bytes, at| point(readings[at].at, bytes) }.reverse
        (forth + back).join(" ")
      end

      def point(seconds, bytes) = format("%.1f,%.1f", across(seconds), up(bytes))

      def across(seconds) = LEFT + ((WIDTH - LEFT) * seconds / [readings.last.at, 0.001].max)

      def up(bytes) = HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 6) * bytes / [top, 1].max)

      # @return [Array<Array(Float, String)>] height and label of each line of the axis
      def lines = (0..STEPS).map { |step| [up(top * step / STEPS), size(top * step / STEPS)] }
    end
  end
end
