# frozen_string_literal: true

require_relative "blocks"
require_relative "slots"

module Culet
  module Cow
    # Which of Ruby's objects a block of malloc's belongs to: the one in whose slot its address stands, or which leads there by
    # blocks of its own. Needs no knowledge of how any Ruby lays its objects out; a number that is an address by chance can
    # make a block someone's that it is not.
    class Owners
      # In the place of a type: methods, their code, and what calls found; and what Ruby's collector knows of a heap page.
      CODE = :code
      PAGE = :page
      # Types whose objects have tables behind their tables, in the order in which they are followed.
      DEEP = [CODE, 0x02, 0x03, 0x1c, 0x08, 0x0c].freeze
      # Steps behind the first block: from what a class holds to a table, its entries, what calls found, and for which.
      DEPTH = 4
      # A longer block is data, and not followed.
      LONGEST_BYTES = 65_536
      private_constant :DEEP, :DEPTH, :LONGEST_BYTES

      # @param snapshot [Scope::Snapshot]
      # @param memory [Memory]
      # @param blocks [Blocks]
      def initialize(snapshot, memory, blocks)
        @memory = memory
        @blocks = blocks
        @addresses = blocks.handed_out
        @owners = Array.new(blocks.size)
        @classes = Array.new(blocks.size)
        @deep = DEEP.to_h { |type| [type, []] }
        @ranges = ranges(snapshot.regions.reject { |region| region.chunks_payload.empty? })
        snapshot.ruby_pages.each { |page| look_at(page, snapshot.ruby.page_bytes) }
        DEEP.each { |type| follow(type) }
      end

      # @param block [Integer] its number
      # @return [Integer, Symbol, nil] Ruby's number of the type, CODE or PAGE; nil: nobody's that is known
      def of(block) = @owners[block]

      # @param block [Integer] its number
      # @return [Integer, nil] the second word of the object that it belongs to: of most, the address of its class; nil:
      #   nobody's that is known, or only by way of another block
      def class_of(block) = @classes[block]

      private

      # Those that lie side by side are one.
      def ranges(regions)
        regions.slice_when { |one, other| one.end != other.start }.flat_map { |side_by_side| [side_by_side.first.start, side_by_side.last.end] }.pack("Q*")
      end

      def look_at(page, page_bytes)
        bytes = @memory.read(page.address, page.address + page_bytes) or return
        described = @addresses[bytes.unpack1("Q")]
        @owners[described] = PAGE if described
        found = Words.in_slots(bytes, page.first_slot / Memory::WORD_BYTES, page.slot_bytes / Memory::WORD_BYTES, @ranges)
        at = 0
        while at < found.size
          block = @addresses[found[at]]
          own(block, found[at + 1], found[at + 2]) if block && @owners[block].nil?
          at += 3
        end
      end

      def own(block, flags, second)
        return unless Slots.live?(flags)

        owner = Slots.code?(flags) ? CODE : flags & Slots::TYPE
        @owners[block] = owner
        @deep[owner]&.push(block)
        @classes[block] = second unless owner == CODE || owner == Slots::IMEMO
      end

      # In the order of addresses, which is how they are read fast.
      def follow(type)
        found = @deep.fetch(type)
        DEPTH.times do
          found = found.sort.flat_map { |block| behind(block, type) }
          break if found.empty?
        end
      end

      # Blocks that nobody had, and to which this one leads.
      def behind(block, type)
        first = @blocks.start(block) + @blocks.header_bytes
        past = @blocks.past(block)
        return [] if past - first > LONGEST_BYTES || past <= first

        bytes = @memory.peek(first, past) or return []
        Words.within(bytes, @ranges).filter_map do |word|
          other = @addresses[word]
          next if other.nil? || @owners[other]

          @owners[other] = type
          other
        end
      end
    end
  end
end
