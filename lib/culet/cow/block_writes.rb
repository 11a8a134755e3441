# frozen_string_literal: true

require_relative "blocks"
require_relative "code_slots"
require_relative "memory"
require_relative "owners"
require_relative "writes"

module Culet
  module Cow
    # What was written to malloc's blocks, out of the addresses of words that differ between two processes.
    class BlockWrites
      # glibc keeps in a free block two links, and two more in one of 1 KiB or longer (malloc/malloc.c, "struct malloc_chunk");
      # in one that a thread keeps for itself a link and a key.
      LINKS_BYTES = 16
      LONG_LINKS_BYTES = 32
      LONG_BYTES = 1024
      CATEGORIES = { Owners::CODE => :inline_caches, Owners::PAGE => :collector }.freeze
      # Classes, modules, classes of modules, and nobody that is known: from a class it is a long way.
      REMEMBERING = [0x02, 0x03, 0x1c, nil].freeze
      # Longer ones hold other things besides: the interpreter's own state, for one.
      LONGEST_CALLS_BYTES = 4096
      private_constant :LINKS_BYTES, :LONG_LINKS_BYTES, :LONG_BYTES, :CATEGORIES, :REMEMBERING, :LONGEST_CALLS_BYTES

      # @param here [Blocks] of the process
      # @param there [Blocks] of the relative
      # @param owners [Owners]
      # @param code [CodeSlots] of the process
      def initialize(here, there, owners, code)
        @code = code
        @calls = {}
        @here = here
        @there = there
        @owners = owners
        @kept = {}
      end

      # @param words [Array<Integer>] addresses on one page of a heap, ascending
      # @return [Integer] sum of Writes::BITS
      def mask(words)
        mask = at = 0
        while at < words.size
          category, past = judge(words[at])
          mask |= Writes::BITS.fetch(category)
          at += 1
          at += 1 while at < words.size && words[at] < past
        end
        mask
      end

      # @param from [Integer] address of a page
      # @param to [Integer] address behind it
      # @yieldparam owner [Integer, Symbol, nil] of a block in use, as Owners has it
      # @yieldparam address [Integer, nil] of the owner's class
      # @yieldparam kind [Symbol] :malloc or :malloc_made, as Writes::Holding has them
      # @yieldparam bytes [Integer] of the block between the two
      def each_used(from, to)
        index = @here.at(from) || return
        while index < @here.size && @here.start(index) < to
          if @here.used?(index)
            bytes = [@here.past(index), to].min - [@here.start(index), from].max
            yield @owners.of(index), @owners.class_of(index), kept?(index) ? :malloc : :malloc_made, bytes if bytes.positive?
          end
          index += 1
        end
      end

      private

      # @return [Array(Symbol, Integer)] the category of that word, and up to which address it is everything's
      def judge(address)
        index = @here.at(address) or return [:metadata, address]
        # glibc's first word of a block is the last of the one before, if that is in use.
        offset = address - @here.start(index)
        return tail(index, address) if offset < @here.header_bytes - Memory::WORD_BYTES
        return [:metadata, address] if offset < @here.header_bytes
        return [:metadata, @here.past(index)] if @here.state(index) == Scope::Region::OVERHEAD
        return [freed(index, address), address] unless @here.used?(index)

        [used(index), @here.past(index)]
      end

      def tail(index, address)
        before = index.positive? ? index - 1 : nil
        return [:metadata, address] unless @here.used?(before) && @here.past(before) == @here.start(index)

        [used(before), address]
      end

      def used(index)
        return :reuse unless kept?(index)

        CATEGORIES.fetch(@owners.of(index)) { |owner| REMEMBERING.include?(owner) && calls?(index) ? :inline_caches : :data }
      end

      # What a class remembers of calls is in blocks with addresses of methods' entries and of call caches.
      def calls?(index)
        @calls.fetch(index) do
          first = @here.start(index) + @here.header_bytes
          @calls[index] = @here.past(index) - first <= LONGEST_CALLS_BYTES && @code.lead_from?(first, @here.past(index))
        end
      end

      def kept?(index) = @kept.fetch(index) { @kept[index] = @there.same?(@here.start(index), @here.past(index)) }

      # A word of the allocator's, in one of the processes; else something that came and went since the fork.
      def freed(index, address) = link?(@here, index, address) || link?(@there, @there.at(address), address) ? :metadata : :reuse

      def link?(blocks, index, address)
        return false if blocks.header_bytes.zero? || index.nil?

        offset = address - blocks.start(index)
        return true if offset < blocks.header_bytes
        return false if blocks.used?(index)

        long = blocks.past(index) - blocks.start(index) >= LONG_BYTES
        offset < blocks.header_bytes + (long ? LONG_LINKS_BYTES : LINKS_BYTES)
      end
    end
  end
end
