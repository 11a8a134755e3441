# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "columns"
require_relative "line"

module Culet
  module Top
    # The page of keys and columns.
    module Help
      # Keys of the key line, the most important first.
      KEYS = [["q", "Quit"], ["h", "Help"], ["/", "Filter"], ["<>", "Sort"], ["r", "Reverse"], ["t", "Tree"],
              ["Space", "Pause"]].freeze
      # Below the page.
      LEAVING = [["Up Down", "Scroll"], ["Other keys", "Back"]].freeze
      ABOUT = [["q", "quit"],
               ["< >", "sort by the column to the left or right; also S and s"],
               ["r", "reverse the order"],
               ["t", "tree or list"],
               ["/", "filter by title or process number; Enter keeps it, Esc clears it"],
               ["Space", "pause, and go on"],
               ["Up Down PgUp PgDn", "scroll; also k and j"],
               ["Left Right", "scroll the titles"],
               ["h ?", "this page"]].freeze
      private_constant :ABOUT

      module_function

      # @param width [Integer] columns of the terminal
      def lines(width)
        names = ABOUT.map { |keys, _| keys.size }.max
        [Line.new.add("Keys", :bold), *list(ABOUT, names, width), Line.new,
         Line.new.add("Columns, as far as they fit", :bold),
         *list(Columns::ALL.map { |column| [column.heading, column.about] }, names, width)]
      end

      def list(pairs, room, width)
        pairs.flat_map do |name, text|
          first, *rest = Text::Lines.wrap(text, columns: [width - room - 4, 16].max).lines(chomp: true)
          [Line.new.add("  #{name.ljust(room)}", :bold).add("  #{first}"),
           *rest.map { |more| Line.new.add("#{" " * (room + 4)}#{more.strip}") }]
        end
      end
      private_class_method :list
    end
  end
end
