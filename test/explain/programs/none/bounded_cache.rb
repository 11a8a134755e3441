# frozen_string_literal: true

# says: a cache that was filled and replaces its oldest page
# shape: small, single
require_relative "../../load"

CACHE = {}
number = 0
visit = lambda do
  CACHE[number += 1] = "page #{number} ".ljust(1_000, "x")
  CACHE.shift if CACHE.size > 15_000
end
15_000.times { visit.call }
Load.run(every: 0.05) { 20.times { visit.call } }
