# frozen_string_literal: true

require_relative "../../text/size"
require_relative "../../text/numbers"

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

    # Equal strings in the picture: one to keep, and copies with bytes of their own.
    class BundleRow < Row
      # Copies drawn individually.
      MOST = 2
      private_constant :MOST

      private

      def caption
        "#{Text::Numbers.grouped(@group.count)} equal strings, #{Text::Size.human(@group.held_bytes)}#{from}"
      end

      def copies = @group.count - 1

      def lines = 1 + [copies, MOST].min + (copies > MOST ? 1 : 0)

      def content
        words = shown(@group.kept)
        [object(0, "keep"), edge("edge", 0, BYTES_LEFT, 0), bytes("stays", 0, words),
         *Array.new([copies, MOST].min) { |number| copy(number + 1, words) }, rest]
      end

      def copy(line, words)
        [gone(line, "copy"), edge("gone", line, BYTES_LEFT, line), bytes("goes", line, words)].join
      end

      def gone(line, words)
        box("goes", LEFT, line, OBJECT_WIDTH) +
          text(LEFT + (OBJECT_WIDTH / 2), middle(line) + 4, words, "small", "middle")
      end

      def rest
        return unless copies > MOST

        line = lines - 1
        gone(line, "#{Text::Numbers.grouped(copies - MOST)} more") +
          text(BYTES_LEFT, middle(line) + 4, "each with its own copy of the bytes", "small")
      end

      def bytes(kind, line, words)
        box(kind, BYTES_LEFT, line, width_of(words)) +
          text(BYTES_LEFT + (PADDING / 2), middle(line) + 5, words, "code")
      end
    end

    # Suffixes of a string in the picture: the buffer of the longest string, and below it, aligned to its end, the
    # buffers of the suffixes, which could point into it.
    class SuffixRow < Row
      # Suffixes drawn individually.
      MOST = 3
      private_constant :MOST

      private

      def caption
        count = @group.count
        are = count == 1 ? "is a suffix" : "are suffixes"
        "#{Text::Numbers.count(count, "string")} #{are} of another, #{Text::Size.human(@group.held_bytes)}#{from}"
      end

      def parts = @group.parts.first(MOST)

      def lines = 1 + parts.size + (@group.count > parts.size ? 1 : 0)

      def whole = @whole ||= @group.kept.ends(FITTING)

      def whole_width = width_of(whole)

      def content
        [object(0, "keep"), edge("edge", 0, BYTES_LEFT, 0), box("stays", BYTES_LEFT, 0, whole_width),
         text(BYTES_LEFT + (PADDING / 2), middle(0) + 5, whole, "code"),
         *parts.each_with_index.map { |part, index| end_of(part, index + 1) }, rest]
      end

      # The width is proportional to the bytes.
      def end_of(part, line)
        width = [whole_width * part.bytes.fdiv([@group.kept.bytes, 1].max), 30].max
        left = BYTES_LEFT + whole_width - width
        fitting = ((width - PADDING) / CHARACTER).floor
        words = part.ends(fitting)
        [object(line, "String"), edge("gone", line, left, line), box("goes", left, line, width), instead(line, left),
         (text(left + (PADDING / 2), middle(line) + 5, words, "code") if words.size <= fitting)].compact.join
      end

      # The pointer into the longest string.
      def instead(line, left)
        start = LEFT + OBJECT_WIDTH
        above = line_top(line) - ((LINE - BOX) / 2)
        corner = left.round(1)
        route = "M#{start} #{middle(line) - 5} L#{start + 10} #{above} L#{corner} #{above} L#{corner} #{line_top(0)}"
        %(<path class="instead" d="#{route}"/>)
      end

      def rest
        more = @group.count - parts.size
        return unless more.positive?

        object(lines - 1, "#{Text::Numbers.grouped(more)} more") +
          text(BYTES_LEFT, middle(lines - 1) + 4, "shorter suffixes, each with its own buffer", "small")
      end
    end
  end
end
