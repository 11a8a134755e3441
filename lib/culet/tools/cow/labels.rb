# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../model/sharing/size_classes"
require_relative "../../model/sharing/writes"

module Culet
  module Cow
    # The names of figures in tables and pages.
    module Labels
      WRITES = { flag_bits: "flag bits of objects", collector: "garbage collector marks and free lists",
                 inline_caches: "inline caches of methods", metadata: "allocator metadata",
                 reuse: "new objects and blocks in free space", data: "contents of existing objects and blocks",
                 elsewhere: "stacks, static data, other memory", unknown: "unknown",
                 same: "rewritten with the same bytes", freed: "objects freed by the collector",
                 aged: "objects that survived a collection" }.freeze
      CLASSES = { SizeClasses::LARGE => "large blocks", SizeClasses::EMPTY => "unused",
                  SizeClasses::METADATA => "metadata" }.freeze
      TYPES = { "code" => "method code", "collector" => "garbage collector", "none" => "blocks of no object" }.freeze
      # Upper bounds of the ranges of sizes without a row of their own.
      RANGES = [64, 256, 1024, 4096].freeze
      private_constant :CLASSES, :TYPES, :RANGES

      module_function

      # @param name [String] a key of Writes' holdings
      # @return [String]
      def type(name) = TYPES.fetch(name, name)

      # @param all [Hash{Integer => Object}] by bytes
      # @return [Hash{String => Object}]
      def sizes(all) = all.transform_keys { |bytes| "#{bytes} bytes" }

      # @param all [Hash{Integer, String => Object}] from SizeClasses
      # @return [Hash{String => Object}]
      def classes(all) = all.transform_keys { |name| CLASSES.fetch(name) { "#{name} bytes" } }

      # @param bytes [Integer] of a block
      # @return [String] the name of its range
      def other_classes(bytes)
        past = RANGES.find { |bound| bytes <= bound }
        if past
          "others up to #{Text::Numbers.grouped(past)} bytes"
        else
          "others above #{Text::Numbers.grouped(RANGES.last)} bytes"
        end
      end
    end
  end
end
