# frozen_string_literal: true

module Culet
  # Addresses from `start` to before `end`.
  #
  # @api private
  AddressRange = Struct.new(:start, :end)

  # Finds the parts of a sorted list of address ranges that overlap queries; the queries come in address order too, so
  # the list is walked once.
  #
  # @api private
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
