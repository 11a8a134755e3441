# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "size_classes"
require_relative "writes"

module Culet
  module Cow
    # What figures are called where people read them.
    module Labels
      WRITES = { flag_bits: "flag bits of objects", collector: "the collector's marks and lists", inline_caches: "inline caches of methods", metadata: "the allocator's own words",
                 reuse: "objects and blocks made since, in holes", data: "contents of objects and blocks that were there", elsewhere: "stacks, static data and other memory", unknown: "not known",
                 same: "nothing: the bytes are the same" }.freeze
      CLASSES = { SizeClasses::LARGE => "larger ones", SizeClasses::EMPTY => "nothing given out", SizeClasses::METADATA => "its own records" }.freeze
      TYPES = { "code" => "methods' code", "collector" => "the collector's", "none" => "blocks of no object" }.freeze
      private_constant :CLASSES, :TYPES

      module_function

      # @param name [String] as Writes' holdings have it
      # @return [String]
      def type(name) = TYPES.fetch(name, name)

      # @param all [Hash{Integer => Object}] by bytes
      # @return [Hash{String => Object}]
      def sizes(all) = all.transform_keys { |bytes| "#{bytes} bytes" }

      # @param all [Hash{Integer, String => Object}] as SizeClasses has it
      # @return [Hash{String => Object}]
      def classes(all) = all.transform_keys { |name| CLASSES.fetch(name) { "#{name} bytes" } }

      # Sizes that have no row of their own, in ranges.
      RANGES = [64, 256, 1024, 4096].freeze
      private_constant :RANGES

      # @param bytes [Integer] of a block
      # @return [String] of which range it is
      def other_classes(bytes)
        past = RANGES.find { |bound| bytes <= bound }
        past ? "others up to #{Text::Numbers.grouped(past)} bytes" : "others above #{Text::Numbers.grouped(RANGES.last)} bytes"
      end
    end
  end
end
