# frozen_string_literal: true

module Culet
  # How many of a process's resident bytes lie in regions, which are described in more detail than their mappings.
  #
  # @api private
  class Residence
    # @return [Integer] resident bytes of malloc's regions
    attr_reader :malloc_bytes

    # @return [Integer] resident bytes of Ruby pages inside malloc blocks, where Ruby could not map them itself
    attr_reader :ruby_in_malloc_bytes

    # @param snapshot [Scope::Snapshot]
    def initialize(snapshot)
      @snapshot = snapshot
      @malloc_bytes = @ruby_in_malloc_bytes = 0
      @covered = Hash.new(0)
      walk
    end

    # @param mapping [Scope::Mapping]
    # @return [Integer] its resident bytes outside every region
    def rest_bytes(mapping) = [mapping.rss_bytes - @covered[mapping.id], 0].max

    private

    # Both lists are in address order and without overlaps, so that one pass over them is enough.
    def walk
      ruby = ruby_ranges
      index = ruby_index = 0
      regions = @snapshot.regions
      @snapshot.mappings.each do |mapping|
        mapping.each_resident(@snapshot.process.page_bytes) do |first, past|
          index = overlaps(regions, index, first, past) do |region, bytes|
            count(region, mapping, bytes)
            next unless region.malloc?

            first_inside = [first, region.start].max
            past_inside = [past, region.end].min
            ruby_index = overlaps(ruby, ruby_index, first_inside, past_inside) do |_, part|
              @ruby_in_malloc_bytes += part
            end
          end
        end
      end
    end

    Range = Struct.new(:start, :end)
    private_constant :Range

    def ruby_ranges
      return [] unless @snapshot.ruby

      bytes = @snapshot.ruby.page_bytes
      @snapshot.ruby_pages.map { |page| Range.new(page.address, page.address + bytes) }.sort_by(&:start)
    end

    # Yields each part that overlaps, with how many bytes.
    #
    # @return [Integer] the index to continue from
    def overlaps(parts, index, first, past)
      index += 1 while index < parts.size && parts[index].end <= first
      at = index
      while at < parts.size && parts[at].start < past
        yield parts[at], [past, parts[at].end].min - [first, parts[at].start].max
        at += 1
      end
      index
    end

    def count(region, mapping, bytes)
      @malloc_bytes += bytes if region.malloc?
      @covered[mapping.id] += bytes
    end
  end
end
