# frozen_string_literal: true

# says: an export builds all its rows at once, every ten seconds
# shape: small, single
# peak: 60
require_relative "../../load"

TEXTS = Load.texts(10)
ticks = 0
Load.run(every: 0.1) do
  Load.work(ticks += 1)
  next unless (ticks % 100).zero?

  rows = Load.texts(80) # HERE
  sleep(1.5)
  rows.clear
  GC.start
end
