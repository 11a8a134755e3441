# frozen_string_literal: true

# 25 threads take jobs off a queue. A job waits some milliseconds, as for a
# database, and builds 1,024 strings of 1 KiB; every 25th job is a hundred times
# larger. Nothing is kept.
#
# The published case: the memory bloat of multi-threaded job servers (25 threads
# was Sidekiq's default for years), where ordinary jobs and a rare huge one share a
# process and glibc gives nearly every thread an arena of its own. See Nate
# Berkopec, "Malloc Can Double Multi-threaded Ruby Program Memory Usage" (2017).
#
# CULET_SCALE multiplies the number of jobs; below 1 also the size of a large one.

require_relative "shared/rest"

THREADS = 25
JOBS = (600 * SCALE).ceil
STRINGS = 1_024
LARGE_EVERY = 25
LARGE_FACTOR = (100 * SCALE.clamp(0.01, 1)).ceil

def job(strings) = Array.new(strings) { "x" * 1_024 }.size

jobs = Queue.new
JOBS.times { |number| jobs << number }
jobs.close

workers = Array.new(THREADS) do
  Thread.new do
    built = 0
    while (number = jobs.pop)
      sleep((number % 5) / 1_000.0)
      large = number % LARGE_EVERY == LARGE_EVERY - 1
      built += job(large ? STRINGS * LARGE_FACTOR : STRINGS)
    end
    built
  end
end
built = workers.sum(&:value)
abort("threads: only #{built} strings were built") if built < JOBS * STRINGS
Rest.call
