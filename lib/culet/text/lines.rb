# frozen_string_literal: true

module Culet
  module Text
    # Lines that fit the terminal. The command line sets the width once, in `within`; every table and sentence of a
    # report reads it.
    module Lines
      # A line of a sentence is no longer than this, however wide the terminal is.
      LONGEST_SENTENCE = 100
      # A narrower terminal is taken for one of this width.
      LEAST_COLUMNS = 40
      COLORS = /\e\[[0-9;]*m/
      # Control characters, and those that change the direction of writing.
      UNPRINTABLE = /[[:cntrl:]\u202a-\u202e\u2066-\u2069]/
      private_constant :LONGEST_SENTENCE, :LEAST_COLUMNS, :COLORS, :UNPRINTABLE

      @columns = nil

      module_function

      # @param columns [Integer, nil] of the terminal; nil: no limit
      # @yield with this width in force
      # @return the block's value
      def within(columns)
        before = @columns
        @columns = columns && [columns, LEAST_COLUMNS].max
        yield
      ensure
        @columns = before
      end

      # @return [Integer, nil] columns that a table may take; nil: no limit
      def columns = @columns

      # @return [Integer] columns that a line of a sentence may take
      def sentence_columns = [LONGEST_SENTENCE, @columns].compact.min

      # @param text [Object] may have colours
      # @return [Integer] columns that it takes on a terminal
      def width(text)
        text = uncolored(text.to_s.chomp)
        return text.size if text.ascii_only?

        require "unicode/display_width"
        Unicode::DisplayWidth.of(text)
      rescue LoadError # it comes with terminal-table, without which there are no tables
        text.size
      end

      # @return [String] without ANSI colours
      def uncolored(text) = text.gsub(COLORS, "")

      # Names and titles that other programs chose must not move the cursor, set colours or change the direction.
      #
      # @param text [Object]
      # @return [String] with a question mark for each character that would
      def printable(text) = text.to_s.scrub("?").gsub(UNPRINTABLE, "?")

      # @param text [String] one paragraph
      # @param indent [Integer] columns before the second and later lines
      # @param columns [Integer] of a line, except for a longer word
      # @return [String] the lines
      def wrap(text, indent: 0, columns: sentence_columns)
        text.gsub(/(.{1,#{columns - indent}})(?:\s+|\z)/, "\\1\n#{" " * indent}").rstrip
      end

      # Breaks at spaces the lines that are wider than the terminal. Longer words, such as paths, stay whole.
      #
      # @param text [String] may have colours
      # @param indent [Integer, nil] columns before the second and later lines of each; nil: two more than the first has
      # @return [String]
      def fold(text, indent: nil)
        return text unless @columns

        text.each_line.map { |line| width(line) > @columns ? folded(line, indent) : line }.join
      end

      def folded(line, indent)
        later = " " * (indent || (line[/\A */].size + 2))
        first, *words = line.scan(/ *[^ \n]+/)
        lines = words.each_with_object([+first]) do |word, all|
          width(all.last + word) > @columns ? all << (later + word.lstrip) : all.last << word
        end
        "#{lines.join("\n")}#{"\n" if line.end_with?("\n")}"
      end
      private_class_method :folded

      # @param list [Array<#topic, #text, #remedy>] verdicts
      # @yieldparam topic [String]
      # @yieldreturn [String] the topic as it is printed
      # @return [String] each in lines, its remedy below it
      def verdicts(list)
        list.map do |one|
          lines = [wrap("#{yield(one.topic)}: #{printable(one.text)}.", indent: 2)]
          lines << "  #{wrap(one.remedy, indent: 4)}" if one.remedy
          lines.join("\n")
        end.join("\n")
      end

      # @param word [String] in front of each
      # @return [String, nil] a line for each; nil where there is none
      def notes(sentences, word = "note")
        return if sentences.empty?

        sentences.map { |sentence| wrap("#{word}: #{printable(sentence)}", indent: 2) }.join("\n")
      end

      # @return [String] "a", "a and b", "a, b and c"
      def list(names) = names.size < 2 ? names.first.to_s : "#{names[0..-2].join(", ")} and #{names.last}"
    end
  end
end
