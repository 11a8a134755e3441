# frozen_string_literal: true

# says: a worker thread logs into a variable of its own, which nothing empties
# shape: small, threaded
# growth: 15
require_relative "../../load"

Load.threads(3, every: 0.1) do |number|
  log = Thread.current[:log] ||= []
  40.times { log << "entry #{number} ".ljust(200, "x") } # HERE
end
Load.run(every: 0.5) { Load.work(0) }
