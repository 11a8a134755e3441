# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "row"

module Culet
  module Strings
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
