# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "row"

module Culet
  module Strings
    # Ends of a string in the picture: the long one's buffer, and below it, in line with its end, the buffers that would go
    # away; the strings would point into the long one.
    class SuffixRow < Row
      # Ends that are drawn.
      MOST = 3
      private_constant :MOST

      private

      def caption
        count = @group.count
        "#{Text::Numbers.count(count, "string")} #{count == 1 ? "is" : "are"} the end of another: together #{Text::Size.human(@group.held_bytes)}#{from}"
      end

      def parts = @group.parts.first(MOST)

      def lines = 1 + parts.size + (@group.count > parts.size ? 1 : 0)

      def whole = @whole ||= @group.kept.ends(FITTING)

      def whole_width = width_of(whole)

      def content
        [object(0, "stays"), edge("edge", 0, BYTES_LEFT, 0), box("stays", BYTES_LEFT, 0, whole_width),
         text(BYTES_LEFT + (PADDING / 2), middle(0) + 5, whole, "code"), *parts.each_with_index.map { |part, index| end_of(part, index + 1) }, rest]
      end

      # As long, of the whole, as its bytes are of the whole's.
      def end_of(part, line)
        width = [whole_width * part.bytes.fdiv([@group.kept.bytes, 1].max), 30].max
        left = BYTES_LEFT + whole_width - width
        fitting = ((width - PADDING) / CHARACTER).floor
        words = part.ends(fitting)
        [object(line, "String"), edge("gone", line, left, line), box("goes", left, line, width), instead(line, left),
         (text(left + (PADDING / 2), middle(line) + 5, words, "code") if words.size <= fitting)].compact.join
      end

      # Where the string would point: into the whole, at the place where its text begins there.
      def instead(line, left)
        start = LEFT + OBJECT_WIDTH
        above = line_top(line) - ((LINE - BOX) / 2)
        %(<path class="instead" d="M#{start} #{middle(line) - 5} L#{start + 10} #{above} L#{left.round(1)} #{above} L#{left.round(1)} #{line_top(0)}"/>)
      end

      def rest
        more = @group.count - parts.size
        return unless more.positive?

        object(lines - 1, "#{Text::Numbers.grouped(more)} more") + text(BYTES_LEFT, middle(lines - 1) + 4, "shorter ends, with a buffer of their own each", "small")
      end
    end
  end
end
