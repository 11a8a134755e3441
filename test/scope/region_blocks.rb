# frozen_string_literal: true

require "culet/scope/varints"

# The blocks of a region, one by one, as its C record has them (reader/format.h). culet passes them on to the map's page
# as they are.
module RegionBlocks
  # States of a block; a reader also reports overhead.
  USED = 0
  FREE = 1
  CACHED = 2
  UNIT_BYTES = 16

  # @param region [Culet::Scope::Region]
  # @return [Array<Array(Integer, Integer, Integer)>] in address order: offset from its start, bytes, state
  def self.of(region)
    return [] if region.chunks_payload.empty?

    at, *words = Culet::Scope::Varints.all(region.chunks_payload)
    words.map do |word|
      bytes = (word >> 2) * UNIT_BYTES
      [at, bytes, word & 3].tap { at += bytes }
    end
  end
end
