# frozen_string_literal: true

require_relative "memory"
require_relative "slots"

module Culet
  module Cow
    # Which addresses are those of code in Ruby's heap: of methods, blocks, and of what calls found.
    class CodeSlots
      # @param snapshot [Scope::Snapshot]
      # @param memory [Memory] of the same process
      def initialize(snapshot, memory)
        @pages = snapshot.ruby_pages.sort_by(&:address)
        @page_bytes = snapshot.ruby&.page_bytes.to_i
        @memory = memory
      end

      # @param first [Integer] address
      # @param past [Integer] address
      # @return [Boolean] whether a word between them is the address of code
      def lead_from?(first, past)
        bytes = @memory.peek(first, past) or return false

        bytes.unpack("Q*").any? { |word| code?(word) }
      end

      private

      def code?(address)
        page = page_at(address) or return false
        offset = address - page.address - page.first_slot
        return false unless !offset.negative? && (offset % page.slot_bytes).zero? && offset < page.slots * page.slot_bytes

        flags = @memory.read(address, address + Memory::WORD_BYTES)&.unpack1("Q")
        !flags.nil? && Slots.code?(flags)
      end

      def page_at(address)
        return if @pages.empty? || address < @pages.first.address

        page = @pages[(@pages.bsearch_index { |one| one.address > address } || @pages.size) - 1]
        page if address < page.address + @page_bytes
      end
    end
  end
end
