# frozen_string_literal: true

module Culet
  module Cow
    # Where in a process's addresses something is: stretches, in address order, without overlaps and as long as can be.
    class Extents
      # @param snapshot [Scope::Snapshot]
      # @yieldparam bits [Integer] the state of pages, as Scope::Mapping has it
      # @yieldreturn [Boolean] whether they are meant
      def initialize(snapshot)
        bytes = snapshot.process.page_bytes
        @list = snapshot.mappings.each_with_object([]) do |mapping, found|
          first = mapping.start
          mapping.page_runs.each do |count, bits|
            past = first + (count * bytes)
            add(found, first, past) if yield(bits)
            first = past
          end
        end
      end

      # @return [Array<Array(Integer, Integer)>] first and past of each
      def to_a = @list

      # @param first [Integer] address
      # @param past [Integer] address
      # @yieldparam from [Integer] the first of these addresses that are in a stretch
      # @yieldparam to [Integer] behind the last of them
      def each(first, past)
        index = @list.bsearch_index { |_, to| to > first } || return
        while index < @list.size && @list[index].first < past
          from, to = @list[index]
          yield [from, first].max, [to, past].min
          index += 1
        end
      end

      private

      def add(found, first, past)
        found.last&.last == first ? found.last[1] = past : found << [first, past]
      end
    end
  end
end
