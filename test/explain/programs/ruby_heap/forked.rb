# frozen_string_literal: true

# says: each worker has loaded a large document once
# shape: small, forked
# free_slots: 30
require_relative "../../load"

Load.workers(3) do
  objects = Array.new(1_000_000) { Object.new }
  kept = objects.each_slice(300).map(&:first) # HERE
  objects.clear
  4.times { GC.start }
  Load.repeat(every: 0.1) { Load.work(kept.size) }
end
