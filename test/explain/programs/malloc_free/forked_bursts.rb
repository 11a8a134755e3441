# frozen_string_literal: true

# says: each worker had one large request, long ago
# shape: small, forked
# free: 30
# elsewhere: none, ruby_heap
require_relative "../../load"

TEXTS = Load.texts(5)
Load.workers(3) do
  texts = Load.texts(60)
  kept = texts.each_slice(40).map(&:first) # HERE
  texts.clear
  4.times { GC.start }
  Load.repeat(every: 0.1) { Load.work(kept.size) }
end
