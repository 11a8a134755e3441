# frozen_string_literal: true

module Culet
  module Map
    # Page states by address, across mappings.
    class PageStates
      NOWHERE = 0

      # @param mappings [Array<Scope::Mapping>] in address order
      def initialize(mappings, page_bytes:)
        @mappings = mappings
        @page_bytes = page_bytes
        @runs = {}
      end

      # Yields the runs of pages of equal state between two addresses, in address order and without gaps: addresses
      # between mappings have the state NOWHERE.
      #
      # @param from [Integer] address of a page
      # @param to [Integer] address of the page after the last
      # @yieldparam first [Integer] address
      # @yieldparam pages [Integer] how many
      # @yieldparam bits [Integer] as in Scope::Mapping
      def each_run(from, to, &block)
        at = from
        index = @mappings.bsearch_index { |mapping| mapping.end > from } || @mappings.size
        while at < to && index < @mappings.size && @mappings[index].start < to
          mapping = @mappings[index]
          emit(at, mapping.start, NOWHERE, &block) if mapping.start > at
          at = within(mapping, [at, mapping.start].max, [to, mapping.end].min, &block)
          index += 1
        end
        emit(at, to, NOWHERE, &block) if at < to
      end

      private

      def emit(from, to, bits) = yield(from, (to - from) / @page_bytes, bits)

      # @return [Integer] `to`
      def within(mapping, from, to)
        firsts, states = runs(mapping)
        index = (firsts.bsearch_index { |first| first > from } || firsts.size) - 1
        while from < to
          past = firsts[index + 1] || to
          past = to if past > to
          yield from, (past - from) / @page_bytes, states[index]
          from = past
          index += 1
        end
        to
      end

      # A mapping's runs as addresses and states; pages without a run are NOWHERE.
      def runs(mapping)
        @runs[mapping.id] ||= begin
          at = mapping.start
          firsts = []
          states = []
          mapping.each_run(@page_bytes) do |first, past, bits|
            firsts << first
            states << bits
            at = past
          end
          at < mapping.end ? [firsts << at, states << NOWHERE] : [firsts, states]
        end
      end
    end
  end
end
