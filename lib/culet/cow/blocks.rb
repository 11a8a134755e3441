# frozen_string_literal: true

require_relative "../scope/region"

module Culet
  module Cow
    # Malloc's blocks one by one, as a reading with blocks told them: where each begins, how long it is, what state it is in.
    class Blocks
      # Before what the program gets, glibc keeps two words, of which the first is the previous block's as long as that one
      # is in use (malloc/malloc.c, "struct malloc_chunk").
      HEADERS = { "glibc" => 16 }.freeze
      UNIT_BYTES = 16
      # So many blocks are tried one after the other before they are searched.
      NEARBY = 8
      private_constant :HEADERS, :UNIT_BYTES, :NEARBY

      # @return [Integer] bytes from a block's start to what the program gets
      attr_reader :header_bytes

      # @param snapshot [Scope::Snapshot]
      def initialize(snapshot)
        @header_bytes = HEADERS.fetch(snapshot.allocator.name, 0)
        @last = 0
        @starts = []
        @words = []
        snapshot.regions.each { |region| add(region) unless region.chunks_payload.empty? }
      end

      # @return [Integer] how many there are
      def size = @starts.size

      # Who asks in the order of addresses is answered fast.
      #
      # @param address [Integer]
      # @return [Integer, nil] number of the block that has it
      def at(address)
        @last = nearby(address) || ((@starts.bsearch_index { |start| start > address } || @starts.size) - 1)
        @last if @last >= 0 && address < past(@last)
      end

      # @param index [Integer]
      # @return [Integer] address
      def start(index) = @starts[index]

      # @param index [Integer]
      # @return [Integer] address behind it
      def past(index) = @starts[index] + ((@words[index] >> 2) * UNIT_BYTES)

      # @param index [Integer]
      # @return [Integer] one of Scope::Region's USED, FREE, CACHED, OVERHEAD
      def state(index) = @words[index] & 3

      # @param index [Integer, nil]
      # @return [Boolean]
      def used?(index) = !index.nil? && state(index) == Scope::Region::USED

      # @param start [Integer] address
      # @param past [Integer] address
      # @return [Boolean] whether there is a block in use between just these
      def same?(start, past)
        index = at(start)
        used?(index) && start(index) == start && past(index) == past
      end

      # Where what the program got begins, of all blocks in use.
      #
      # @return [Hash{Integer => Integer}] address => number of its block
      def handed_out
        found = {}
        @words.each_with_index { |word, index| found[@starts[index] + @header_bytes] = index if (word & 3) == Scope::Region::USED }
        found
      end

      private

      # The last one that has this address before its end, if it is among the next.
      def nearby(address)
        index = @last
        return if index.negative? || index >= @starts.size || @starts[index] > address

        NEARBY.times do
          following = @starts[index + 1]
          return index if following.nil? || following > address

          index += 1
        end
        nil
      end

      # Regions come in address order.
      def add(region)
        first, *words = Scope::Varints.all(region.chunks_payload)
        at = region.start + first.to_i
        words.each do |word|
          @starts << at
          at += (word >> 2) * UNIT_BYTES
        end
        @words.concat(words)
      end
    end
  end
end
