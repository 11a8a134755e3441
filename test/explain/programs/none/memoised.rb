# frozen_string_literal: true

# says: visitors come to the same pages, each of which is rendered once
# shape: small, threaded
# also: unknown
# rises: yes, ever more slowly
require_relative "../../load"

PAGES = {}
LOCK = Mutex.new
random = Random.new(1)
Load.threads(3, every: 0.05) do
  20.times do
    page = random.rand(20_000)
    LOCK.synchronize { PAGES[page] ||= "page #{page} ".ljust(1_000, "x") }
  end
end
Load.run(every: 0.5) { Load.work(0) }
