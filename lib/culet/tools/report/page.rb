# frozen_string_literal: true

module Culet
  module Report
    # How wide the place is where text will be read. It is known where a report is asked for, and needed in each of its
    # tables and sentences.
    module Page
      # Lines of sentences are no longer than this however wide the place is.
      TEXT_COLUMNS = 100
      # What is narrower than this is written as if it were not.
      LEAST_COLUMNS = 40
      private_constant :TEXT_COLUMNS, :LEAST_COLUMNS

      @columns = nil

      module_function

      # @param columns [Integer, nil] of the terminal; nil: no bound
      # @yield
      # @return the block's value
      def within(columns)
        before = @columns
        @columns = columns && [columns, LEAST_COLUMNS].max
        yield
      ensure
        @columns = before
      end

      # Breaks lines that are too long at their spaces. Words that are too long themselves, such as paths to be copied, stay
      # whole.
      #
      # @param text [String] may have colours
      # @param indent [Integer, nil] columns before the second line of each and those behind it; nil: two more than before
      #   the first
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

      # @param text [String] may have colours
      # @return [Integer] columns that it takes on a terminal
      def width(text)
        plain = text.chomp.gsub(/\e\[[0-9;]*m/, "")
        return plain.size if plain.ascii_only?

        require "unicode/display_width"
        Unicode::DisplayWidth.of(plain)
      rescue LoadError # it comes with terminal-table, without which there are no tables
        plain.size
      end

      # @return [Integer, nil] columns that a table may take; nil: as many as it needs
      def columns = @columns

      # @return [Integer] columns that a line of a sentence may take
      def text_columns = [TEXT_COLUMNS, @columns].compact.min
    end
  end
end
