# frozen_string_literal: true

require_relative "address_ranges"

module Culet
  # How many of a process's resident bytes lie in regions, which are described in more detail than their mappings.
  #
  # @api private
  class Residence
    # @return [Integer] resident bytes of malloc's regions
    attr_reader :malloc_bytes

    # @return [Integer] resident bytes of Ruby pages inside malloc blocks, where Ruby could not map them itself
    attr_reader :ruby_in_malloc_bytes

    def initialize(snapshot)
      @snapshot = snapshot
      @malloc_bytes = @ruby_in_malloc_bytes = 0
      @covered = Hash.new(0)
      walk
    end

    # @return [Integer] its resident bytes outside every region
    def rest_bytes(mapping) = [mapping.rss_bytes - @covered[mapping.id], 0].max

    private

    # Both lists are in address order and without overlaps, so that one pass over them is enough.
    def walk
      regions = RangeCursor.new(@snapshot.regions)
      ruby = RangeCursor.new(ruby_ranges)
      @snapshot.mappings.each do |mapping|
        mapping.each_resident(@snapshot.process.page_bytes) do |first, past|
          regions.each(first, past) do |region, from, to|
            @covered[mapping.id] += to - from
            next unless region.malloc?

            @malloc_bytes += to - from
            ruby.each(from, to) { |_, start, stop| @ruby_in_malloc_bytes += stop - start }
          end
        end
      end
    end

    def ruby_ranges
      return [] unless @snapshot.ruby

      bytes = @snapshot.ruby.page_bytes
      @snapshot.ruby_pages.map { |page| AddressRange.new(page.address, page.address + bytes) }.sort_by(&:start)
    end
  end
end
