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
  end
end
