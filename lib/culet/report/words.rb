# frozen_string_literal: true

module Culet
  module Report
    # Text for a terminal.
    module Words
      WIDTH = 100

      module_function

      # What a process calls itself is not to move the cursor or change the colours.
      #
      # @param text [Object]
      # @return [String] without control characters
      def plain(text) = text.to_s.gsub(/[[:cntrl:]]/, "?")

      # @param text [String]
      # @param indent [Integer] columns before the second line and those behind it
      # @return [String] lines of at most WIDTH columns, where its words allow that
      def wrap(text, indent: 0)
        text.gsub(/(.{1,#{WIDTH - indent}})(?:\s+|\z)/, "\\1\n#{" " * indent}").rstrip
      end
    end
  end
end
