# frozen_string_literal: true

require "erb"
require_relative "../text/size"

module Culet
  # A chart over time as SVG, with an axis of seconds and one of bytes.
  class TimeChart
    # Parts of the axis of bytes.
    STEPS = 4
    private_constant :STEPS

    # @param seconds [Float] the end of the axis of seconds
    # @param bytes [Numeric] the end of the axis of bytes
    # @param width [Integer] in user units, like the height
    # @param text [Integer] the size of the labels in user units
    def initialize(seconds:, bytes:, width: 900, height: 260, text: 12)
      @seconds = [seconds, 0.001].max
      @bytes = [bytes, 1].max.to_f
      @width = width
      @left = 6 * text
      @low = height - (2 * text)
      @height = height
      @text = text
    end

    # @param list [Array<Array(Float, Numeric)>] seconds and bytes
    # @return [String] the points of a shape
    def points(list)
      scale = (@width - @left) / @seconds
      list.map { |seconds, bytes| format("%.1f,%.1f", @left + (scale * seconds), y(bytes)) }.join(" ")
    end

    # @param words [String] the text alternative
    # @param shapes [Array<String>] elements with points
    # @return [String]
    def svg(words, shapes)
      ends = label(@left, @height - 6, "0 s", "start") +
             label(@width, @height - 6, "#{@seconds.round(@seconds < 10 ? 1 : 0)} s", "end")
      %(<svg viewBox="0 0 #{@width} #{@height}" role="img" aria-label="#{ERB::Util.html_escape(words)}">) +
        "#{axis}#{shapes.join("\n")}#{ends}</svg>"
    end

    private

    def y(bytes) = @low - ((@low - 6) * bytes / @bytes)

    def axis
      (0..STEPS).map { |step| @bytes * step / STEPS }.map do |bytes|
        at = y(bytes).round(1)
        %(<line x1="#{@left}" x2="#{@width}" y1="#{at}" y2="#{at}" stroke="var(--line)"/>) +
          label(@left - (@text / 2), at + (@text / 3), Text::Size.human(bytes), "end")
      end.join
    end

    def label(left, top, text, anchor) = %(<text x="#{left}" y="#{top}" text-anchor="#{anchor}">#{text}</text>)
  end
end
