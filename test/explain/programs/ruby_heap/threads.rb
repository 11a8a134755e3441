# frozen_string_literal: true

# says: threads have filled the heap together, and few objects remain
# shape: small, threaded
# free_slots: 50
require_relative "../../load"

KEPT = Queue.new
bursts = Array.new(6) do
  Thread.new do
    objects = Array.new(300_000) { Object.new }
    objects.each_slice(300) { |group| KEPT << group.first } # HERE
    objects.clear
    loop { Load.work(1) && sleep(0.5) }
  end
end
sleep(0.1) until KEPT.size == bursts.size * 1_000
4.times { GC.start }
Load.run(every: 0.1) { Load.work(0) }
