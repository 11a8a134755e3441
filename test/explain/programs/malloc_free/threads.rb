# frozen_string_literal: true

# says: a burst in eight threads leaves its arenas full of holes
# shape: small, threaded
# free: 60
# elsewhere: none
require_relative "../../load"

KEPT = Queue.new
bursts = Array.new(8) do
  Thread.new do
    texts = Load.texts(15)
    texts.each_slice(40) { |group| KEPT << group.first } # HERE
    texts.clear
    loop { Load.work(1) && sleep(0.5) }
  end
end
sleep(0.1) until KEPT.size == bursts.size * 300
4.times { GC.start }
Load.run(every: 0.1) { Load.work(0) }
