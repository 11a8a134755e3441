# frozen_string_literal: true

# Each of 25 threads holds a window over a stream of strings of 50 to 8,000 bytes.
# When the window is full, a random number of the oldest fall out, so that blocks
# of all sizes and ages come to lie side by side. Then the program idles, as a
# server does at night.
#
# The published case: rendered pages and query results in a threaded server, the
# shape that Ruby's Feature #14718 ("Use jemalloc by default?") was argued with.
#
# CULET_SCALE multiplies the number of strings and the idle time.

require_relative "shared/rest"

THREADS = 25
STRINGS = (30_000 * SCALE).ceil
WINDOW = 50
SIZES = (50..8_000)
IDLE_SECONDS = 2.0 * SCALE

def slide(random)
  window = []
  STRINGS.times do
    window << ("x" * random.rand(SIZES))
    window.shift(random.rand(WINDOW)) if window.size >= WINDOW
  end
  window
end

workers = Array.new(THREADS) { |number| Thread.new { slide(Random.new(number)) } }
windows = workers.map(&:value)
sleep(IDLE_SECONDS)
abort("window: the strings are gone") if windows.all?(&:empty?)
Rest.call
