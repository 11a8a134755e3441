# frozen_string_literal: true

require_relative "../../culet"
require_relative "blocks"
require_relative "slots"

module Culet
  module Cow
    # Which of Ruby's objects a block of malloc's belongs to: the one in whose slot its address stands, or which leads there by
    # blocks of its own. Needs no knowledge of how any Ruby lays its objects out; a number that is an address by chance can
    # make a block someone's that it is not.
    class Owners
      # In the place of a type: code of methods and blocks, and what Ruby's collector knows of a heap page.
      CODE = :code
      PAGE = :page
      # Types whose objects have tables behind their tables, in the order in which they are followed.
      DEEP = [CODE, 0x02, 0x03, 0x1c, 0x08, 0x0c].freeze
      # Steps from a slot: class, table, the table's entries; hash, table, entries.
      DEPTH = 3
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
        @owners = {}
        @classes = {}
        @low, @high = @addresses.each_key.minmax
        return if @low.nil?

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

      def look_at(page, page_bytes)
        bytes = @memory.read(page.address, page.address + page_bytes) or return
        described = @addresses[bytes.unpack1("Q")]
        @owners[described] = PAGE if described
        each_pointer(bytes) do |block, index|
          offset = (index * Memory::WORD_BYTES) - page.first_slot
          next if offset.negative? || @owners.key?(block)

          own(block, *bytes.unpack("QQ", offset: page.first_slot + offset - (offset % page.slot_bytes)))
        end
      end

      def own(block, flags, owner)
        return unless Slots.live?(flags)

        @owners[block] = Slots.iseq?(flags) ? CODE : flags & Slots::TYPE
        @classes[block] = owner unless (flags & Slots::TYPE) == Slots::IMEMO
      end

      def follow(type)
        found = @owners.filter_map { |block, owner| block if owner == type }
        DEPTH.times do
          found = found.flat_map { |block| behind(block, type) }
          break if found.empty?
        end
      end

      # Blocks that nobody had, and to which this one leads.
      def behind(block, type)
        first = @blocks.start(block) + @blocks.header_bytes
        past = @blocks.past(block)
        return [] if past - first > LONGEST_BYTES || past <= first

        bytes = @memory.read(first, past) or return []
        found = []
        each_pointer(bytes) do |other, _|
          next if @owners.key?(other)

          @owners[other] = type
          found << other
        end
        found
      end

      def each_pointer(bytes)
        Words.between(bytes, @low, @high).each_slice(2) do |index, word|
          block = @addresses[word]
          yield block, index if block
        end
      end
    end
  end
end
