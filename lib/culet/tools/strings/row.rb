# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Strings
    # One group in the picture: the String objects on the left, the bytes on the right.
    class Row
      LEFT = 24
      OBJECT_WIDTH = 92
      # Left edge and largest width of the bytes.
      BYTES_LEFT = 250
      BYTES_WIDTH = 706
      LINE = 26
      BOX = 20
      # Width of a character, and the padding of a box.
      CHARACTER = 7.83
      PADDING = 16
      # Characters that fit.
      FITTING = 82

      # @param group [Group]
      # @param top [Integer] its top edge
      # @param all [String, nil] the sum over all groups of its kind
      def initialize(group, top:, all: nil)
        @group = group
        @top = top
        @all = all
      end

      # @return [Integer]
      def height = ((lines + 1) * LINE) + 22

      # @return [String] SVG
      def to_s
        [%(<line class="rule" x1="#{LEFT}" y1="#{@top - 8}" x2="#{BYTES_LEFT + BYTES_WIDTH}" y2="#{@top - 8}"/>),
         text(LEFT, @top + 14, caption, "small"),
         text(BYTES_LEFT + BYTES_WIDTH, @top + 14,
              ["#{Text::Size.human(@group.gain_bytes)} savable", @all].compact.join("; "), "gain", "end"),
         *content].join("\n")
      end

      private

      def line_top(line) = @top + ((line + 1) * LINE)

      def middle(line) = line_top(line) + (BOX / 2)

      def site = @group.sites.first&.first.to_s

      # A path keeps its end.
      def from
        if site.empty?
          ""
        else
          ", from #{site.size > 50 ? "...#{site[-47..]}" : site}"
        end
      end

      # @param words [String] its text
      def object(line, words)
        box("object", LEFT, line, OBJECT_WIDTH) +
          text(LEFT + (OBJECT_WIDTH / 2), middle(line) + 4, words, "small", "middle")
      end

      def box(kind, left, line, width)
        %(<rect class="#{kind}" x="#{left.round(1)}" y="#{line_top(line)}" ) +
          %(width="#{width.round(1)}" height="#{BOX}" rx="3"/>)
      end

      # @param to [Numeric] its right end
      def edge(kind, from_line, to, to_line)
        start = LEFT + OBJECT_WIDTH
        half = (start + to) / 2.0
        first = middle(from_line)
        last = middle(to_line)
        %(<path class="#{kind}" d="M#{start} #{first} C#{half} #{first} #{half} #{last} #{to.round(1)} #{last}"/>)
      end

      def shown(sample) = sample.to_s(FITTING - 8)

      def width_of(words) = [(words.size * CHARACTER) + PADDING, BYTES_WIDTH].min

      def text(left, top, words, kind, anchor = nil)
        anchored = %( text-anchor="#{anchor}") if anchor
        %(<text class="#{kind}" x="#{left}" y="#{top}"#{anchored}>#{Graph.escape(words)}</text>)
      end
    end
  end
end
