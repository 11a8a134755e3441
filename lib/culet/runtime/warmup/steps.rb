# frozen_string_literal: true

module Culet
  module Warmup
    # The steps that prepare a heap for forking. Each method is a step; it returns nil if this Ruby or allocator lacks
    # it.
    module Steps
      # Collections after which an object is old, see RVALUE_OLD_AGE in CRuby's gc.c, besides the one of `collect`.
      PROMOTIONS = 3
      # All steps.
      NAMES = %i[ruby collect compact promote trim].freeze
      # For a Ruby without Process.warmup.
      BY_HAND = %i[collect compact promote trim].freeze

      class << self
        # Process.warmup trims glibc only, and does not collect after the compaction, without
        # which each worker's heap grows more and shares less.
        #
        # @return [Array<Symbol>]
        def default = Process.respond_to?(:warmup) ? %i[ruby collect trim] : BY_HAND

        # @param names [Array<Symbol>]
        # @return [Array<Symbol>]
        # @raise [ArgumentError] for an unknown step
        def checked(names)
          unknown = names.find { |name| !NAMES.include?(name) }
          if unknown
            raise ArgumentError, "#{unknown.inspect} is not a warm-up step; " \
                                 "the steps are #{NAMES.map(&:inspect).join(", ")}"
          end

          names
        end

        # @param name [Symbol] one of NAMES
        # @return [Object, nil] nil if the step did nothing
        def make(name) = public_send(name)

        # Process.warmup: a full collection, compaction, promotion of all objects, code ranges of strings, release of
        # empty pages, and malloc_trim. A collector loaded as a library may omit some of it: MMTk does not collect.
        #
        # @return [Boolean, nil]
        def ruby = (Process.warmup if Process.respond_to?(:warmup))

        # Collects garbage once, instead of in every child.
        #
        # @return [true]
        def collect
          GC.start
          true
        end

        # Compacts the heap, so that fewer pages have holes that children fill.
        #
        # @return [Object, nil] nil where compaction is not supported
        def compact
          GC.compact if GC.respond_to?(:compact)
        rescue NotImplementedError
          nil
        end

        # Makes all objects old, so that minor collections in the children do not mark them.
        #
        # @return [true]
        def promote
          PROMOTIONS.times { GC.start }
          true
        end

        # Returns free memory to the kernel.
        #
        # @return [Integer, nil] bytes; nil if the allocator has no function for it, or without the native extension
        def trim
          Culet.trim
        rescue Error
          nil
        end
      end
    end
  end
end
