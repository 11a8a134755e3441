# frozen_string_literal: true

module Culet
  module Cow
    # Address ranges of pages in a given state.
    module PageRanges
      module_function

      # @param snapshot [Scope::Snapshot]
      # @yieldparam bits [Integer] state of the pages, see Scope::Mapping
      # @yieldreturn [Boolean] whether to include them
      # @return [Array<Array(Integer, Integer)>] start and end of each range, sorted; adjacent ranges are joined
      def of(snapshot)
        bytes = snapshot.process.page_bytes
        snapshot.mappings.each_with_object([]) do |mapping, found|
          first = mapping.start
          mapping.page_runs.each do |count, bits|
            past = first + (count * bytes)
            if yield(bits)
              found.last&.last == first ? found.last[1] = past : found << [first, past]
            end
            first = past
          end
        end
      end
    end

    # Finds the parts of a sorted list of address ranges that overlap queries; the queries come in address order too, so
    # the list is walked once.
    class RangeCursor
      # @param list [Array<#start, #end>] sorted, without overlaps
      def initialize(list)
        @list = list
        @at = 0
      end

      # @param first [Integer] address, not below that of the last query
      # @param past [Integer] address
      # @yieldparam part [Object] an element of the list
      # @yieldparam from [Integer] start of the overlap
      # @yieldparam to [Integer] end of the overlap
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
