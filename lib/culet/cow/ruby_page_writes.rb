# frozen_string_literal: true

require_relative "memory"
require_relative "slots"
require_relative "writes"

module Culet
  module Cow
    # One of Ruby's heap pages in two processes: what was written to it, slot by slot, and what lies in it.
    class RubyPageWrites
      WORD = Memory::WORD_BYTES
      private_constant :WORD

      # @param page [Scope::RubyPage] as the process has it
      # @param here [Array<Integer>] its words in the process
      # @param there [Array<Integer>] its words in the relative
      # @param old_mask [Integer] bits of an object's first word that together say that it is old
      def initialize(page, here, there, old_mask:)
        @page = page
        @here = here
        @there = there
        @old_mask = old_mask
        @slot_words = page.slot_bytes / WORD
        @first = page.first_slot / WORD
      end

      # @param words [Array<Integer>] addresses of words that differ, ascending: of one of the kernel's pages
      # @param from [Integer] where that page begins
      # @param writes [Writes] which learns of flags
      # @return [Integer] sum of Writes::BITS
      def mask(words, from, writes)
        mask = past = 0
        words.each do |word|
          next if word < past

          slot = slot_of((word - @page.address) / WORD)
          mask |= Writes::BITS.fetch(slot ? category(slot, writes, from) : :collector)
          past = slot ? @page.address + ((slot + @slot_words) * WORD) : word + WORD
        end
        mask
      end

      # @param from [Integer] address in the page
      # @param to [Integer] address in the page
      # @yieldparam flags [Integer] the first word of an object
      # @yieldparam owner [Integer] the second: of most, the address of its class
      # @yieldparam kind [Symbol] :old, :young or :made, as Writes::Holding has them
      # @yieldparam bytes [Integer] of it between the two
      def each_object(from, to)
        first = (from - @page.address) / WORD
        last = (to - @page.address) / WORD
        slot = slot_of(first) || @first
        past = [last, @first + (@page.slots * @slot_words)].min
        while slot < past
          here = @here[slot]
          if Slots.live?(here)
            words = slot < first || slot + @slot_words > last ? [slot + @slot_words, last].min - [slot, first].max : @slot_words
            yield here, @here[slot + 1], kind(slot, here, @there[slot]), words * WORD
          end
          slot += @slot_words
        end
      end

      private

      # Most are as they were.
      def kind(slot, here, there)
        return :old if here == there && old?(there) && @here[slot + 1] == @there[slot + 1]
        return :made unless same?(slot)

        old?(there) ? :old : :young
      end

      # @return [Integer, nil] index of the first word of the slot that has this word
      def slot_of(index)
        return if index < @first || index >= @first + (@page.slots * @slot_words)

        index - ((index - @first) % @slot_words)
      end

      def category(slot, writes, from)
        here = @here[slot]
        there = @there[slot]
        return free(slot) unless Slots.live?(here)
        return :reuse unless same?(slot)
        # A method's entry is marked by the first call that is remembered, for one.
        return :inline_caches if Slots.code?(here)
        return :data unless only_flags?(slot)

        # Told once, on the page that the first word is on.
        writes.flag(Slots.changed(here, there)) if @page.address + (slot * WORD) >= from
        :flag_bits
      end

      # The collector links free slots by their first words.
      def free(slot) = rest_differs?(slot, 3) ? :reuse : :collector

      # An object is taken for the same when it is of the same type, and class, and not younger, unless the relative's was not
      # known to outlive any collection and nothing of it is left. A class that is new while nothing else is, is a class of
      # the object's own.
      def same?(slot)
        here = @here[slot]
        there = @there[slot]
        return false unless Slots.live?(there) && (here ^ there).nobits?(Slots::TYPE)
        return false if (there & @old_mask) > (here & @old_mask)
        return Slots.kind(here) == Slots.kind(there) if (here & Slots::TYPE) == Slots::IMEMO

        return !rest_differs?(slot, 2) if @here[slot + 1] != @there[slot + 1]

        (there & @old_mask).positive? || !all_differs?(slot)
      end

      # What both do not use is left out.
      def all_differs?(slot)
        (2...@slot_words).all? { |word| @here[slot + word] != @there[slot + word] || @here[slot + word].zero? } && rest_differs?(slot, 2)
      end

      def only_flags?(slot) = @here[slot] != @there[slot] && !rest_differs?(slot, 1)

      def rest_differs?(slot, from) = (from...@slot_words).any? { |word| @here[slot + word] != @there[slot + word] }

      def old?(flags) = (flags & @old_mask) == @old_mask
    end
  end
end
