# frozen_string_literal: true

# usage: threads.rb THREADS COUNT LIBRARY
#
# Threads fill arrays with strings and hashes of all sizes and drop most; then all rest, and the library (freeze.c) says
# what malloc knows and stops the process. For any Ruby from 2.7 on.
require "fiddle"

threads, count, library = ARGV
freeze_now = Fiddle::Function.new(Fiddle.dlopen(library)["freeze_now"], [], Fiddle::TYPE_INT)
ready = Queue.new
kept = Array.new(threads.to_i) do |seed|
  Thread.new do
    random = Random.new(seed)
    held = []
    count.to_i.times do |i|
      held << ("x" * ((i % 500).zero? ? random.rand(400_000) : random.rand(20..3000)))
      held << Array.new(random.rand(40)) { |n| [n.to_s] } if (i % 10).zero?
      held.delete_at(random.rand(held.size)) if random.rand < 0.7
    end
    ready << held
    sleep
  end
end
kept.size.times { ready.pop }
GC.start
GC.disable
freeze_now.call
