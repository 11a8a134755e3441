# frozen_string_literal: true

module Culet
  module Warmup
    # What can be done to a heap before it is forked. Each method is a step; it returns nil where this Ruby, or this
    # allocator, has nothing of the kind.
    module Steps
      # Collections after which an object is old, see RVALUE_OLD_AGE in CRuby's gc.c, besides the one of `collect`.
      PROMOTIONS = 3
      NAMES = %i[ruby collect compact promote strings trim].freeze
      # Where Ruby has no Process.warmup. Without `strings`: of a preloaded cluster's memory nothing was seen to come of it.
      BY_HAND = %i[collect compact promote trim].freeze

      class << self
        # What pays: Ruby 3.3 and later have all of it in one call, but for other allocators' trim and a collection after the
        # compaction, without which each worker's heap grows more and shares less.
        #
        # @return [Array<Symbol>]
        def default = Process.respond_to?(:warmup) ? %i[ruby collect trim] : BY_HAND

        # @param names [Array<Symbol>]
        # @return [Array<Symbol>]
        # @raise [ArgumentError] naming one that is no step
        def checked(names)
          unknown = names.find { |name| !NAMES.include?(name) }
          raise ArgumentError, "#{unknown.inspect} is no step of a warm-up; there are #{NAMES.map(&:inspect).join(", ")}" if unknown

          names
        end

        # @param name [Symbol] one of NAMES
        # @return [Object, nil] nil where nothing was done
        def make(name) = public_send(name)

        # Ruby's own: a full collection, compaction, everything that is left becomes old, strings' code ranges, pages
        # without an object go back, and glibc's trim. A collector that Ruby loaded as a library may leave some of it out:
        # MMTk does not collect.
        #
        # @return [Boolean, nil]
        def ruby = (Process.warmup if Process.respond_to?(:warmup))

        # Garbage goes, so that no child's first collection has to free it, each for itself.
        def collect
          GC.start
          true
        end

        # Objects move together, so that fewer of their pages have holes which children fill.
        #
        # @return [Object, nil] nil where this Ruby, or its pages on this kernel's, cannot
        def compact
          GC.compact if GC.respond_to?(:compact)
        rescue NotImplementedError
          nil
        end

        # What is left becomes old, so that children's minor collections leave it alone.
        def promote
          PROMOTIONS.times { GC.start }
          true
        end

        # Each string learns what it consists of, which it would otherwise write into itself when it is first asked.
        def strings
          ObjectSpace.each_object(String, &:valid_encoding?)
          true
        end

        # Free memory goes back to the kernel, under whichever allocator.
        #
        # @return [Integer, nil] bytes; nil where the allocator has no call for it, or the native part is missing
        def trim
          Culet.trim
        rescue Error
          nil
        end
      end
    end
  end
end
