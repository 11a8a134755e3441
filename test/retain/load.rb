# frozen_string_literal: true

# Runs a program of leaks or steady under a load that allocates much more and keeps nothing of it, until it is killed or
# its parent ends.
require_relative "../fixtures/request"
load ARGV.fetch(0)

BATCH = 20
PAUSE_SECONDS = 0.01
# Warmed up: code is compiled, pools are made, small caches are full.
number = 0
serve = lambda do
  BATCH.times do
    Request.new(number).call
    work(number)
    number += 1
  end
  sleep PAUSE_SECONDS
end
100.times { serve.call }
puts "up"
$stdout.flush
parent = Process.ppid
serve.call while Process.ppid == parent
