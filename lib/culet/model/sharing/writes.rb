# frozen_string_literal: true

module Culet
  module Cow
    # Writes to unshared pages, by the contents of the pages, and the objects on them.
    class Writes
      # flag_bits: only the first word of an object changed (age, frozen, shape, code range). collector: marks and lists
      # of free slots. inline_caches: call and constant caches of methods, and counters. metadata: the allocator's
      # headers and links. reuse: an object or block created after the fork. data: contents of an object or block that
      # existed before. elsewhere: stacks, static data, Ruby's transient heap. unknown: malloc memory without known
      # blocks, and pages not readable in both processes. same: contents equal to the related process's page.
      # freed: slots of objects that the process has freed, and the related process still has. aged: equal contents,
      # with young objects whose ages Ruby keeps elsewhere: a collection stores the first word of each survivor with the
      # value that it had.
      CATEGORIES = %i[flag_bits collector inline_caches metadata reuse data elsewhere unknown same freed aged].freeze
      BITS = CATEGORIES.each_with_index.to_h { |name, index| [name, 1 << index] }.freeze

      # Bytes on unshared pages. old, young: slots of objects that the related process has too; made: slots of objects
      # that it does not have; malloc: blocks of objects that both processes have; malloc_made: blocks that only this
      # one has.
      Holding = Struct.new(:old, :young, :made, :malloc, :malloc_made) do
        # @return [Holding] zero bytes
        def self.none = new(0, 0, 0, 0, 0)

        # @return [Integer]
        def bytes = sum
      end

      # @return [Hash{String => Integer}] number of objects by changed field of the first word, see Comparison::FLAGS
      attr_reader :flags

      # @return [Hash{String => Holding}] by Ruby type; "code" for method code, "collector" for the garbage collector,
      #   "none" for blocks of no object
      attr_reader :holdings

      # @return [Hash{String => Holding}] by class name; empty where class names are unknown
      attr_reader :classes

      def initialize
        @bytes = Hash.new(0)
        @flags = Hash.new(0)
        @holdings, @classes = Array.new(2) { Hash.new { |all, name| all[name] = Holding.none } }
      end

      # @param mask [Integer] sum of BITS
      # @param bytes [Integer] of pages
      def add(mask, bytes) = @bytes[mask] += bytes

      # @param holdings [Hash{String => Holding}] `holdings` or `classes`
      # @param bytes [Array<Integer>] in the order of Holding's members
      def hold(holdings, name, bytes) = holdings[name] = Holding.new(*holdings[name].to_a.zip(bytes).map(&:sum))

      # @return [Writes] the sum
      def +(other) = Writes.new.take(self).take(other)

      # @return [Integer] bytes of all compared pages
      def bytes = @bytes.values.sum

      # @param category [Symbol]
      # @return [Integer] bytes of pages with this category alone
      def only(category) = @bytes.fetch(BITS.fetch(category), 0)

      # @param category [Symbol]
      # @return [Integer] bytes of pages with this category, alone or among others
      def touched(category) = @bytes.sum { |mask, bytes| (mask & BITS.fetch(category)).zero? ? 0 : bytes }

      # Pages that a warm-up before the fork would have kept shared. A worker writes to them as it frees what the parent
      # has left behind, as objects grow old, and as it fills free slots between objects; a warm-up does the former two,
      # and moves free slots to a few pages. Inline caches are filled all the same, and so are holes between blocks: of
      # pages where blocks were freed and others made, some are copied still. Contents that differ are those of another
      # object in a slot that was freed and filled again, or the program writes to them, whatever is done before.
      # Pages that were written back as they were are copied at the first major collection: on Ruby 3.3 it sets each
      # empty inline cache of a call again.
      #
      # @return [Array(Integer, Integer)] bytes, at least and at most
      def avoidable_bytes
        avoidable = @bytes.select { |mask, _| avoidable?(mask) }
        certain = avoidable.reject { |mask, _| with?(mask, :reuse, :metadata) || with?(mask, :data) }
        [certain, avoidable].map { |list| list.sum(&:last) }
      end

      # @return [Hash{String => Object}] for a JSON document
      def document
        categories = CATEGORIES.to_h do |one|
          [one.to_s, { "only_bytes" => only(one), "touched_bytes" => touched(one) }]
        end
        { "compared_bytes" => bytes, "categories" => categories, "flags" => @flags.sort.to_h,
          "objects" => listed(@holdings), "classes" => listed(@classes) }
      end

      # @param other [Writes] whose figures are added to these
      # @return [Writes] itself
      def take(other)
        other.each_mask { |mask, bytes| add(mask, bytes) }
        other.flags.each { |name, count| @flags[name] += count }
        [[@holdings, other.holdings], [@classes, other.classes]].each do |own, others|
          others.each { |name, one| hold(own, name, one.to_a) }
        end
        self
      end

      # @yieldparam mask [Integer]
      # @yieldparam bytes [Integer]
      def each_mask(&) = @bytes.each(&)

      # @return [Boolean] whether most of the flag bits that were written are ages, which a warm-up sets before the fork
      def aging? = 2 * @flags["age"] > @flags.values.sum

      private

      def with?(mask, *categories) = categories.all? { |one| mask.anybits?(BITS.fetch(one)) }

      def avoidable?(mask)
        return false if with?(mask, :inline_caches) || with?(mask, :unknown)
        return with?(mask, :metadata) || with?(mask, :reuse) if with?(mask, :data)

        with?(mask, :metadata) || with?(mask, :freed) || with?(mask, :aged) || (with?(mask, :flag_bits) && aging?)
      end

      def listed(holdings)
        holdings.sort_by { |_, one| -one.bytes }
                .to_h { |name, one| [name, one.to_h.transform_keys { |key| "#{key}_bytes" }] }
      end
    end
  end
end
