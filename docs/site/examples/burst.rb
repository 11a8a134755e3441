# frozen_string_literal: true

# A process to draw a map of: eight threads have a burst of work behind them and keep a little of it. On SIGUSR1 it
# gives back what it can, by Culet.trim, which on glibc is malloc_trim(3).

require_relative "../../../lib/culet"

threads = Array.new(8) do |number|
  Thread.new do
    random = Random.new(number)
    bodies = Array.new(24_000) { "x" * random.rand(24..900) }
    Thread.current[:kept] = bodies.each_slice(60).map(&:first)
    bodies.clear
    Thread.stop
  end
end
Thread.pass until threads.all?(&:stop?)
GC.start

trap(:USR1) { Culet.trim }
puts "ready"
$stdout.flush
sleep
