# frozen_string_literal: true

require_relative "../../culet"
require_relative "block_writes"
require_relative "blocks"
require_relative "cursor"
require_relative "memory"
require_relative "owners"
require_relative "ruby_page_writes"
require_relative "standing"
require_relative "writes"

module Culet
  module Cow
    # The bytes of a process's pages against those of its relative at the same addresses, page by page of those that are not
    # shared any more. Both run meanwhile, so what they change between the reading and this counts as it is now.
    class Comparison
      # So much is read at once.
      WINDOW_BYTES = 1 << 20
      WORD = Memory::WORD_BYTES
      # Objects whose both bits of age are set are hardly there where these are not both bits of age: one in so many is not.
      OLD_SHARE = 100
      # A heap page of Ruby's, as a stretch of addresses.
      Stretch = Struct.new(:start, :end, :page)
      private_constant :WINDOW_BYTES, :WORD, :OLD_SHARE, :Stretch

      # @param snapshot [Scope::Snapshot] read with blocks
      # @param relative [Scope::Snapshot] read with blocks
      # @param names [ClassNames, nil] of the two
      def initialize(snapshot, relative, names: nil)
        @names = names
        @snapshot = snapshot
        @relative = relative
        @page_bytes = snapshot.process.page_bytes
      end

      # @return [Writes]
      # @raise [Culet::Error] when one of the two has ended or may not be read, or the extension is missing
      def call
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        @writes = Writes.new
        @types = Hash.new { |types, owner| types[owner] = @writes.holdings[name(owner)] }
        Memory.open(@snapshot) do |here|
          Memory.open(@relative) do |there|
            @here = here
            @there = there
            prepare
            Standing.new(@snapshot, relative: @relative).each { |_, first, past, how| stretch(first, past) if how == :unshared }
          end
        end
        @writes
      end

      private

      def prepare
        @regions = Cursor.new(@snapshot.regions)
        @pages = Cursor.new(@snapshot.ruby_pages.sort_by(&:address).map { |page| Stretch.new(page.address, page.address + @snapshot.ruby.page_bytes, page) })
        blocks = Blocks.new(@snapshot)
        owners = Owners.new(@snapshot, @here, blocks)
        @blocks = BlockWrites.new(blocks, Blocks.new(@relative), owners, CodeSlots.new(@snapshot, @here))
        @told = blocks.size.positive? && @relative.regions.any? { |region| !region.chunks_payload.empty? }
      end

      def stretch(first, past)
        first.step(past - 1, WINDOW_BYTES) { |from| window(from, [from + WINDOW_BYTES, past].min) }
      end

      def window(first, past)
        return unknown(first, past) unless @there.present?(first, past)

        here = @here.read(first, past)
        there = @there.read(first, past)
        return unknown(first, past) unless here && there

        first.step(past - 1, @page_bytes) do |from|
          offset = from - first
          page(from, here.byteslice(offset, @page_bytes), there.byteslice(offset, @page_bytes))
        end
      end

      # A window of which a part is not in memory is looked at page by page.
      def unknown(first, past)
        return @writes.add(Writes::BITS.fetch(:unknown), past - first) if past - first <= @page_bytes

        first.step(past - 1, @page_bytes) { |from| window(from, from + @page_bytes) }
      end

      def page(from, here, there)
        mask = 0
        rest = from
        to = from + @page_bytes
        words = here == there ? [] : differing(from, here, there)
        @pages.each(from, to) do |stretch, first, past|
          inside, words = within(words, first, past)
          mask |= ruby(stretch.page, first, past, inside)
          rest = past
        end
        mask |= others(from, to, words) if rest < to
        @writes.add(mask.zero? ? Writes::BITS.fetch(:same) : mask, @page_bytes)
      end

      # @return [Array<Integer>] addresses of the words that differ
      def differing(from, here, there) = Words.differing(here, there).map { |index| from + (index * WORD) }

      # @return [Array(Array<Integer>, Array<Integer>)] those between two addresses, and the others
      def within(words, first, past)
        return [words, []] if words.empty? || (words.first >= first && words.last < past)

        words.partition { |word| word >= first && word < past }
      end

      def ruby(page, first, past, words)
        found = ruby_page(page) or return 0
        found.each_object(first, past) do |flags, owner, kind, bytes|
          type = flags & Slots::TYPE
          @types[type][kind] += bytes
          by_class(owner, kind, bytes) if @names && type != Slots::IMEMO
        end
        found.mask(words, first, @writes)
      end

      # The kernel's pages of one of Ruby's come one after the other.
      def ruby_page(page)
        return @ruby_page if @ruby_address == page.address

        @ruby_address = page.address
        here, there = [@here, @there].map { |memory| memory.read(page.address, page.address + @snapshot.ruby.page_bytes)&.unpack("Q*") }
        @ruby_page = (RubyPageWrites.new(page, here, there, old_mask: old_mask) if here && there)
      end

      def others(from, to, words)
        mask = 0
        @regions.each(from, to) do |region, first, past|
          next unless region.malloc?

          inside, words = within(words, first, past)
          mask |= malloc(region, first, past, inside)
        end
        words.empty? ? mask : mask | Writes::BITS.fetch(:elsewhere)
      end

      def malloc(region, first, past, words)
        return words.empty? ? 0 : Writes::BITS.fetch(:metadata) if region.holds == SizeClasses::METADATA
        return words.empty? ? 0 : Writes::BITS.fetch(:unknown) unless @told

        @blocks.each_used(first, past) do |owner, address, kind, bytes|
          @types[owner][kind] += bytes
          by_class(address, kind, bytes) if @names && address
        end
        @blocks.mask(words)
      end

      def by_class(address, kind, bytes)
        name = @names[address] or return

        @writes.classes[name][kind] += bytes
      end

      def name(owner) = { Owners::CODE => "code", Owners::PAGE => "collector", nil => "none" }.fetch(owner) { Slots::NAMES.fetch(owner, "unknown") }

      # Which bits of an object's first word say that it is old: told by Ruby itself, or seen in the relative's objects.
      def old_mask
        @old_mask ||= @names && @names.old_bits.positive? ? @names.old_bits : seen_old_mask
      end

      def seen_old_mask
        flags = @relative.ruby_pages.first(OLD_SHARE).flat_map { |page| flags_of(page) }.reject { |one| one & Slots::TYPE == Slots::DATA }
        both = flags.count { |one| one.allbits?(Slots::AGES) }
        both * OLD_SHARE > flags.size ? Slots::AGES : Slots::PROMOTED
      end

      def flags_of(page)
        bytes = @there.read(page.address, page.address + @relative.ruby.page_bytes) or return []
        Array.new(page.slots) { |slot| bytes.unpack1("Q", offset: page.first_slot + (slot * page.slot_bytes)) || 0 }.select { |flags| Slots.live?(flags) }
      end
    end
  end
end
