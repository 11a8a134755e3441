# frozen_string_literal: true

require_relative "recording"

module Culet
  module Profile
    # One address space for the mappings of several processes, which may have loaded a library at different addresses:
    # each part of a file has one place, that of the first process that had it, unless another part lies there.
    class AddressSpace
      # The largest page of the architectures.
      ALIGNMENT = 64 << 10
      private_constant :ALIGNMENT

      def initialize
        @places = {}
        @taken = [] # by address, none overlaps another
        @mappings = {}.compare_by_identity
      end

      # @param mapping [Recording::Mapping, nil] of a process; nil: the address is in none
      # @param address [Integer] in that process
      # @return [Array(Recording::Mapping, Integer)] the mapping and the address here
      def locate(mapping, address)
        return [nil, address] unless mapping

        place = place(mapping)
        [place, address - mapping.start + place.start]
      end

      # @return [Recording::Mapping] its place here; the same object for the same part of the same file
      def place(mapping)
        @mappings[mapping] ||= begin
          bytes = mapping.end - mapping.start
          @places[[mapping.path, mapping.build_id, mapping.offset, bytes]] ||= free(mapping, bytes)
        end
      end

      private

      def free(mapping, bytes)
        at = @taken.bsearch_index { |one| one.start >= mapping.end } || @taken.size
        if at.zero? || @taken[at - 1].end <= mapping.start
          @taken.insert(at, mapping)
          return mapping
        end

        above = @taken.last.end
        start = above + (-above % ALIGNMENT) + (mapping.start % ALIGNMENT)
        @taken << Recording::Mapping.new(start, start + bytes, mapping.offset, mapping.build_id, mapping.path)
        @taken.last
      end
    end
  end
end
