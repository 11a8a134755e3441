# frozen_string_literal: true

require_relative "numbers"
require_relative "size"

module Culet
  module Text
    # Numbers and sizes as every report writes them.
    module Figures
      private

      def count(...) = Numbers.count(...)

      def percent(...) = Numbers.percent(...)

      def number(value) = Numbers.grouped(value.round)

      def size(bytes) = Size.human(bytes)

      def signed(bytes) = Size.signed(bytes)

      # A cell of a column in MB.
      def mega(bytes, digits: 1) = Size.cell(bytes, digits: digits)
    end
  end
end
