# frozen_string_literal: true

module Culet
  module Cow
    # What the first word of a slot of Ruby's heap says. The type (five bits), freezing, and the marks of old objects are at
    # the same places from Ruby 2.7 to 4.0 (include/ruby/internal/fl_type.h and value_type.h); T_IMEMO's kinds that are named
    # here have the same numbers in all of them (internal/imemo.h), but for one number that is a cache's up to 3.4.
    module Slots
      TYPE = 0x1f
      NONE = 0
      MOVED = 0x1e
      ZOMBIE = 0x1d
      IMEMO = 0x1a
      FROZEN = 1 << 11
      # Two bits of age up to Ruby 3.2, where both stand for old; later the lower one alone does, and on Ruby 4.0 the upper one
      # is set in all typed objects of extensions (DATA).
      AGES = 0x60
      PROMOTED = 0x20
      # A string's: whether all of it is ASCII, valid, or broken in its encoding; looked for when it is first needed.
      CODE_RANGE = 3 << 20
      STRING = 0x05
      DATA = 0x0c
      SHAPE = ~0xffff_ffff & 0xffff_ffff_ffff_ffff

      NAMES = { 0x01 => "T_OBJECT", 0x02 => "T_CLASS", 0x03 => "T_MODULE", 0x04 => "T_FLOAT", 0x05 => "T_STRING", 0x06 => "T_REGEXP", 0x07 => "T_ARRAY",
                0x08 => "T_HASH", 0x09 => "T_STRUCT", 0x0a => "T_BIGNUM", 0x0b => "T_FILE", 0x0c => "T_DATA", 0x0d => "T_MATCH", 0x0e => "T_COMPLEX",
                0x0f => "T_RATIONAL", 0x14 => "T_SYMBOL", 0x1a => "T_IMEMO", 0x1b => "T_NODE", 0x1c => "T_ICLASS" }.freeze

      # T_IMEMO's kinds.
      ISEQ = 7
      METHOD_ENTRY = 6
      REFINEMENTS = 1
      # From here on: what calls and constants found last.
      FIRST_CACHE = 9
      # On Ruby 4.0 instance variables of what is no T_OBJECT; up to 3.4 a constant that was found. Only the former has a shape.
      FIELDS = 13
      KIND_SHIFT = 12
      KIND = 0xf
      private_constant :ISEQ, :METHOD_ENTRY, :REFINEMENTS, :FIRST_CACHE, :FIELDS, :KIND_SHIFT, :KIND

      module_function

      # @param flags [Integer] the first word of a slot
      # @return [Boolean] whether an object is there
      def live?(flags)
        type = flags & TYPE
        type != NONE && type != MOVED && type != ZOMBIE
      end

      # @param flags [Integer]
      # @return [Boolean] whether only the interpreter writes it: code, method entries, what calls found last
      def code?(flags)
        return false unless (flags & TYPE) == IMEMO

        kind = kind(flags)
        return kind != FIELDS || flags.nobits?(SHAPE) if kind >= FIRST_CACHE

        [ISEQ, METHOD_ENTRY, REFINEMENTS].include?(kind)
      end

      # @param flags [Integer]
      # @return [Integer] which of the interpreter's own kinds of object
      def kind(flags) = (flags >> KIND_SHIFT) & KIND

      # @param one [Integer] first word of a slot
      # @param other [Integer] of the same slot in another process
      # @return [Array<String>] what differs between them: "age", "frozen", "shape" (of its instance variables, in the upper
      #   half since Ruby 3.2), "code_range", "other"
      def changed(one, other)
        bits = one ^ other
        ranges = (one & TYPE) == STRING ? CODE_RANGE : 0
        { "age" => AGES, "frozen" => FROZEN, "shape" => SHAPE, "code_range" => ranges, "other" => ~(AGES | FROZEN | SHAPE | ranges) }
          .filter_map { |name, mask| name unless (bits & mask).zero? }
      end
    end
  end
end
