# frozen_string_literal: true

require_relative "page"

module Culet
  module Report
    # Text for a terminal.
    module Words
      module_function

      # Control characters, and those that turn the direction of writing.
      UNPRINTED = /[[:cntrl:]\u202a-\u202e\u2066-\u2069]/
      private_constant :UNPRINTED

      # What a process calls itself is not to move the cursor, change the colours or turn the direction.
      #
      # @param text [Object]
      # @return [String] without characters that do
      def plain(text) = text.to_s.scrub("?").gsub(UNPRINTED, "?")

      # @param list [Array<Verdict>]
      # @yieldparam topic [String]
      # @yieldreturn [String] how it is shown
      # @return [String] each in lines, its remedy below it
      def verdicts(list)
        list.map do |one|
          lines = [wrap("#{yield(one.topic)}: #{plain(one.text)}.", indent: 2)]
          lines << "  #{wrap(one.remedy, indent: 4)}" if one.remedy
          lines.join("\n")
        end.join("\n")
      end

      # @param sentences [Array<String>]
      # @return [String, nil] a note for each; nil where there is none
      def notes(sentences) = (sentences.map { |sentence| wrap("note: #{plain(sentence)}", indent: 2) }.join("\n") unless sentences.empty?)

      # @param text [String]
      # @param indent [Integer] columns before the second line and those behind it
      # @return [String] lines that fit the page, where its words allow that
      def wrap(text, indent: 0)
        text.gsub(/(.{1,#{Page.text_columns - indent}})(?:\s+|\z)/, "\\1\n#{" " * indent}").rstrip
      end
    end
  end
end
