# frozen_string_literal: true

module Culet
  module Cow
    # Goes once over things that have a `start` and an `end`, in address order and without overlaps, for questions that come
    # in address order too.
    class Cursor
      # @param list [Array<#start, #end>]
      def initialize(list)
        @list = list
        @at = 0
      end

      # @param first [Integer] address, not before that of the last question
      # @param past [Integer] address
      # @yieldparam part [Object] one that has addresses between these two
      # @yieldparam from [Integer] the first of them
      # @yieldparam to [Integer] behind the last of them
      def each(first, past)
        skip(first)
        index = @at
        while index < @list.size && @list[index].start < past
          part = @list[index]
          yield part, [part.start, first].max, [part.end, past].min
          index += 1
        end
        skip(past)
      end

      private

      def skip(address)
        @at += 1 while @at < @list.size && @list[@at].end <= address
      end
    end
  end
end
