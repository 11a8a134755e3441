# frozen_string_literal: true

# says: an extension leaks in each worker
# shape: small, forked
# growth: 10
require_relative "../../load"

Load.leaking
TEXTS = Load.texts(10)
Load.workers(2) do
  Load.repeat(every: 0.05) do
    10.times { |number| Load.work(number) }
    8.times { Leaking.parse(1_000) } # HERE
  end
end
