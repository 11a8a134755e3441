# frozen_string_literal: true

# says: a leak has nearly reached the limit
# shape: small, single
# allocators: glibc, culet
# loads: agent limit
# env: CULET_LIMIT=134MB
# also: ruby_leak
require_relative "../../load"

KEPT = Load.texts(108)
4.times { GC.start }
Load.run(every: 0.05) { 5.times { |number| KEPT << "row #{number} ".ljust(800, "x") } } # HERE
