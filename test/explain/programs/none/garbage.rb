# frozen_string_literal: true

# says: threads make garbage at a steady pace
# shape: small, threaded
require_relative "../../load"

TEXTS = Load.texts(20)
Load.threads(4, every: 0.05) { |thread| 20.times { |number| Load.work(thread + number) } }
sleep(3)
Load.run(every: 0.5) { Load.work(0) }
