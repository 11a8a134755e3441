# frozen_string_literal: true

# says: one object of each page remains
# shape: small, single
# free_slots: 50
require_relative "../../load"

objects = Array.new(1_800_000) { Object.new }
KEPT = objects.each_slice(300).map(&:first) # HERE
objects.clear
4.times { GC.start }
Load.run(every: 0.1) { Load.work(0) }
