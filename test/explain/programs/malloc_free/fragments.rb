# frozen_string_literal: true

# says: a load of texts of which every fortieth remains
# shape: small, single
# free: 60
# elsewhere: none
require_relative "../../load"

texts = Load.texts(120)
KEPT = texts.each_slice(40).map(&:first) # HERE
texts.clear
4.times { GC.start }
Load.run(every: 0.1) { |number| Load.work(number) }
