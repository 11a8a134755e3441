# frozen_string_literal: true

# says: a cache whose keys never repeat
# shape: small, threaded
# growth: 20
require_relative "../../load"

CACHE = {}
LOCK = Mutex.new
Load.threads(4, every: 0.1) do |thread|
  Load.work(thread)
  8.times { LOCK.synchronize { CACHE["/pages/#{CACHE.size}"] = "page ".ljust(900, "x") } } # HERE
end
Load.run(every: 0.5) { Load.work(0) }
