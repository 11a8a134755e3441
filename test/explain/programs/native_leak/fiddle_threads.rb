# frozen_string_literal: true

# says: threads allocate by Fiddle and free nothing
# shape: small, threaded
# growth: 20
require_relative "../../load"

require "fiddle"
Load.threads(4, every: 0.1) do |thread|
  Load.work(thread)
  8.times { Fiddle.malloc(1_000) } # HERE
end
Load.run(every: 0.5) { Load.work(0) }
