# frozen_string_literal: true

module Culet
  module Cow
    # Where in a process's addresses something is.
    module Extents
      module_function

      # @param snapshot [Scope::Snapshot]
      # @yieldparam bits [Integer] the state of pages, as Scope::Mapping has it
      # @yieldreturn [Boolean] whether they are meant
      # @return [Array<Array(Integer, Integer)>] first and past of each stretch: in address order, without overlaps and as
      #   long as can be
      def of(snapshot)
        bytes = snapshot.process.page_bytes
        snapshot.mappings.each_with_object([]) do |mapping, found|
          first = mapping.start
          mapping.page_runs.each do |count, bits|
            past = first + (count * bytes)
            found.last&.last == first ? found.last[1] = past : found << [first, past] if yield(bits)
            first = past
          end
        end
      end
    end
  end
end
