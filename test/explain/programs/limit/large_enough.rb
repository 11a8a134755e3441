# frozen_string_literal: true

# says: the program needs nine tenths of what it may use
# shape: small, single
# allocators: glibc, culet
# loads: agent limit
# env: CULET_LIMIT=134MB
require_relative "../../load"

TEXTS = Load.texts(112) # HERE
4.times { GC.start }
Load.run(every: 0.1) { Load.work(0) }
