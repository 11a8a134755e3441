# frozen_string_literal: true

# says: a cache that comes to its bound within the watch
# shape: small, single
# also: unknown
# rises: yes, until the cache is full
require_relative "../../load"

CACHE = {}
number = 0
Load.run(every: 0.05) do
  20.times do
    CACHE[number += 1] = "page #{number} ".ljust(1_000, "x")
    CACHE.shift if CACHE.size > 15_000
  end
end
