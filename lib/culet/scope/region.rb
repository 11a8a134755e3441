# frozen_string_literal: true

require_relative "part"

module Culet
  module Scope
    # Addresses that one owner divides into blocks: an arena's heap, a large block, slabs, Ruby's heap pages. Regions
    # never overlap.
    class Region < Part
      RUBY = "ruby"
      TRANSIENT = "transient"

      numbers :id, :start, :end
      # The arena's id, nil for what belongs to none; the id of the mapping at its start.
      references :arena, :mapping
      texts :holds

      # @return [String] the bytes of its F record behind the number
      attr_accessor :fill_payload

      # @return [String] the bytes of its C record behind the number; empty when blocks were not asked for
      attr_accessor :chunks_payload

      def initialize(fields)
        super
        raise Malformed, "region #{id} ends before it starts" if self.end < start

        @fill_payload = @chunks_payload = ""
      end

      # @return [Integer]
      def bytes = self.end - start

      # @return [Boolean] whether it consists of Ruby's heap pages
      def ruby? = holds == RUBY

      # @return [Boolean] whether malloc made it, and not Ruby by itself
      def malloc? = !ruby? && holds != TRANSIENT

      # @return [Runs] runs of pages in address order: how many, bytes in use in each
      def fill_runs = @fill_runs ||= Runs.new(fill_payload)

      # @raise [Malformed] when its pages go beyond its end, or have more in use than there is
      def check(page_bytes)
        pages = ((self.end - 1) / page_bytes) - (start / page_bytes) + 1
        raise Malformed, "region #{id} has pages beyond its end" if fill_runs.pages > pages
        raise Malformed, "region #{id} has a page with more in use than it holds" if fill_runs.most > page_bytes
      end
    end
  end
end
