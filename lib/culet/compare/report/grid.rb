# frozen_string_literal: true

require_relative "../../errors"

module Culet
  module Compare
    module Report
      # How a table looks on a terminal: columns apart by spaces, one rule below the headings.
      module Grid
        module_function

        # @param columns [Array<Array>] of each column its heading, its cells, and whether it stands left (otherwise right)
        # @param unicode [Boolean] whether lines beyond ASCII can be shown
        # @return [String] the table's lines
        # @raise [Error] when the gem is not there
        def render(columns, unicode:)
          require "terminal-table"
          table = Terminal::Table.new(headings: columns.map(&:first), rows: columns.map { |column| column[1] }.transpose,
                                      style: style(unicode))
          columns.each_with_index { |(_, _, left), index| table.align_column(index, left ? :left : :right) }
          table.render.lines.map(&:rstrip).join("\n")
        rescue LoadError
          raise Error, "the table needs the terminal-table gem; install it with `gem install terminal-table`, or use --json"
        end

        def style(unicode)
          border = unicode ? Terminal::Table::UnicodeBorder.new : Terminal::Table::AsciiBorder.new
          (unicode ? { y: " ", ax: "─", ai: "─", ad: "─", au: "─" } : { y: " ", i: "-" }).each { |key, text| border[key] = text }
          { border: border, border_left: false, border_right: false, border_top: false, border_bottom: false,
            padding_left: 0, padding_right: 1 }
        end
        private_class_method :style
      end
    end
  end
end
