# frozen_string_literal: true

module Culet
  module Limits
    # The memory in use of this process after a collection, of malloc and in the slots of Ruby's heap. Reading creates
    # no objects.
    class MemoryInUse
      # Size of the smallest slot, if Ruby does not report it.
      SLOT_BYTES = 40
      private_constant :SLOT_BYTES

      attr_reader :allocator

      def initialize
        @allocator = Culet.native? ? Culet.allocator[:name] : "unknown"
        @counted = Culet.native? && Culet.send(:malloc_in_use) ? true : false
        require "objspace" unless @counted
        @heaps = heaps
        @counts = {} unless GC.stat.key?(:heap_live_slots) # as with MMTk
      end

      # @return [Boolean] whether the active malloc tells what is in use; if not, `malloc` is what objects tell
      def counted? = @counted

      # @return [void]
      def collect = GC.start

      # @return [Integer] bytes in malloc's blocks; or what Ruby's objects say to have outside of their slots
      def malloc = @counted ? Culet.send(:malloc_in_use) : ObjectSpace.memsize_of_all - slots

      # @return [Integer] live objects, Ruby's own included
      def objects
        return GC.stat(:heap_live_slots) unless @counts

        ObjectSpace.count_objects(@counts)
        @counts.fetch(:TOTAL) - @counts.fetch(:FREE)
      end

      # @return [Integer] bytes of their slots
      def slots
        return objects * slot_bytes unless @heaps

        sum = 0
        @heaps.each { |heap, bytes| sum += live(heap) * bytes }
        sum
      end

      private

      # Ruby 3.2 has slots of several sizes, and no count of each; the smallest stands for all.
      def slot_bytes
        @slot_bytes ||= GC::INTERNAL_CONSTANTS.values_at(:BASE_SLOT_SIZE, :RVALUE_SIZE).compact.first || SLOT_BYTES
      end

      # Heap => bytes of a slot; nil where Ruby counts the slots of all heaps together.
      def heaps
        found = GC.respond_to?(:stat_heap) ? GC.stat_heap : {}
        return if found.empty? || !found.each_value.all? { |heap| heap.key?(:total_freed_objects) }

        found.transform_values { |heap| heap.fetch(:slot_size) }
      end

      def live(heap) = GC.stat_heap(heap, :total_allocated_objects) - GC.stat_heap(heap, :total_freed_objects)
    end
  end
end
