# frozen_string_literal: true

# says: an extension collects a batch in memory of its own, and frees it every fifteen seconds
# shape: small, single
require_relative "../../load"
require "fiddle"

BATCH = []
TEXTS = Load.texts(20)
Load.run(every: 0.05) do
  BATCH << Fiddle.malloc(20_000)
  next if BATCH.size < 300

  BATCH.each { |address| Fiddle.free(address) }
  BATCH.clear
end
