# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "row"

module Culet
  module Strings
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
  end
end
