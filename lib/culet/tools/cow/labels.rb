# frozen_string_literal: true

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
      TYPES = { "code" => "method code", "collector" => "garbage collector", "none" => "blocks of no object" }.freeze
      private_constant :TYPES

      module_function

      # @param name [String] a key of Writes' holdings
      # @return [String]
      def type(name) = TYPES.fetch(name, name)
    end
  end
end
