# frozen_string_literal: true

# says: one of four threads makes a large report, every twelve seconds
# shape: small, threaded
# peak: 60
require_relative "../../load"

Load.threads(3, every: 0.05) { |thread| Load.work(thread) }
Thread.new do
  loop do
    rows = Array.new(60_000) { |row| { id: row, text: "row #{row} ".ljust(900, "x") } } # HERE
    sleep(2)
    rows.clear
    GC.start
    sleep(9)
  end
end
sleep(13)
Load.run(every: 0.5) { Load.work(0) }
