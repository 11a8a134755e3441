# frozen_string_literal: true

module Culet
  module Cow
    # What was written to pages that a process stopped sharing, as far as their bytes tell; and what lies on them.
    class Writes
      # flag_bits: the first word of an object that is the same otherwise: age, freezing, shape, code range. collector: what
      # Ruby's collector writes of its own: marks, lists of free slots. inline_caches: what code found last time, and counts.
      # metadata: the allocator's own words. reuse: an object or block that was made after the fork, where nothing was, or
      # something else. data: an object or block that was there already. elsewhere: stacks, libraries' data, Ruby's transient
      # heap. unknown: malloc, where its blocks are not known, and pages that could not be read in both processes. same: the
      # bytes are those of the relative.
      CATEGORIES = %i[flag_bits collector inline_caches metadata reuse data elsewhere unknown same].freeze
      BITS = CATEGORIES.each_with_index.to_h { |name, index| [name, 1 << index] }.freeze

      # Bytes on pages that are not shared any more, by what they belong to. old, young: of objects of the relative's, in
      # Ruby's heap; made: of objects that the relative does not have there; malloc: of blocks that belong to objects and
      # that the relative has too; malloc_made: of those that it does not have.
      Holding = Struct.new(:old, :young, :made, :malloc, :malloc_made) do
        def self.none = new(0, 0, 0, 0, 0)

        # @return [Integer]
        def bytes = sum
      end

      # @return [Hash{String => Integer}] how many objects changed which of their flag bits, as Comparison::FLAGS has them
      attr_reader :flags

      # @return [Hash{String => Holding}] by Ruby's name of the type; "code" has what methods' code holds, "collector"
      #   what the collector does, "none" blocks that lead to no object
      attr_reader :holdings

      # @return [Hash{String => Holding}] by the name of the class; empty where classes' names are not known
      attr_reader :classes

      def initialize
        @bytes = Hash.new(0)
        @flags = Hash.new(0)
        @holdings, @classes = Array.new(2) { Hash.new { |all, name| all[name] = Holding.none } }
      end

      # @param mask [Integer] sum of BITS: what wrote there
      # @param bytes [Integer] of pages
      def add(mask, bytes) = @bytes[mask] += bytes

      # @param holdings [Hash{String => Holding}] `holdings` or `classes`
      # @param name [String]
      # @param bytes [Array<Integer>] in the order of Holding's members
      def hold(holdings, name, bytes) = holdings[name] = Holding.new(*holdings[name].to_a.zip(bytes).map(&:sum))

      # @param other [Writes]
      # @return [Writes] both together
      def +(other) = Writes.new.take(self).take(other)

      # @return [Integer] bytes of all pages that were looked at
      def bytes = @bytes.values.sum

      # @param category [Symbol]
      # @return [Integer] bytes of pages to which nothing else was written
      def only(category) = @bytes.fetch(BITS.fetch(category), 0)

      # @param category [Symbol]
      # @return [Integer] bytes of pages to which this was written, alone or with other things
      def touched(category) = @bytes.sum { |mask, bytes| (mask & BITS.fetch(category)).zero? ? 0 : bytes }

      # @return [Hash{String => Object}] for a JSON document
      def document
        { "compared_bytes" => bytes, "categories" => CATEGORIES.to_h { |one| [one.to_s, { "only_bytes" => only(one), "touched_bytes" => touched(one) }] },
          "flags" => @flags.sort.to_h, "objects" => listed(@holdings), "classes" => listed(@classes) }
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

      private

      def listed(holdings) = holdings.sort_by { |_, one| -one.bytes }.to_h { |name, one| [name, one.to_h.transform_keys { |key| "#{key}_bytes" }] }
    end
  end
end
