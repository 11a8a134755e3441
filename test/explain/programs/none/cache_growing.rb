# frozen_string_literal: true

# says: a cache that the watch sees filled in part
# shape: small, single
# also: unknown
# rises: yes, ever more slowly
require_relative "../../load"

CACHE = {}
random = Random.new(1)
Load.run(every: 0.05) do
  100.times { CACHE[random.rand(200_000)] ||= "page ".ljust(300, "x") }
  Load.work(0)
end
