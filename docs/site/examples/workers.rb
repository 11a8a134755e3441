# frozen_string_literal: true

# The program of the copy-on-write page in docs/site/examples.md: a master with two workers that were forked from it.
# The first only reads what the master has loaded; the second drops a third of it and allocates anew.
catalogue = Array.new(200_000) { |number| "article #{number}, #{"x" * (number % 60)}" }
GC.start

workers = [false, true].map do |writes|
  fork do
    $0 = "worker that #{writes ? "writes" : "reads"}"
    catalogue.reject!.with_index { |_, index| (index % 3).zero? } if writes
    kept = writes ? Array.new(50_000) { |number| "answer #{number}" } : catalogue.sum(&:size)
    GC.start
    puts "ready"
    $stdout.flush
    sleep
    kept
  end
end
trap(:TERM) { exit }
at_exit { workers.each { |pid| Process.kill(:KILL, pid) } }
sleep
