# frozen_string_literal: true

# A heap of so many objects, of which more than half are Strings; a thread that notes the longest time it did not run.
# Commands on standard input: "pause" writes that time in seconds and forgets it; "dump FILE" writes a dump.
require "culet/agent"
require "objspace"

# A row with three columns.
class Row
  def initialize(number)
    @number = number
    @name = "name #{number}"
    @words = ["word #{number % 1_000}", "note #{number}"]
  end
end

objects = Integer(ARGV.fetch(0))
ROWS = Array.new(objects / 10) { |number| Row.new(number) }
INDEX = ROWS.each_slice(2).to_h { |one, other| ["key #{one.object_id}", other] }
TEXTS = Array.new(objects - (6 * objects / 10)) { |number| "text #{number}" }

longest = 0.0
Thread.new do
  last = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  loop do
    sleep 0.0005
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    longest = [longest, now - last].max
    last = now
  end
end
GC.start
puts ObjectSpace.count_objects.then { |counts| counts[:TOTAL] - counts[:FREE] }
$stdout.flush
while (command = $stdin.gets)
  word, path = command.split
  if word == "dump"
    start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    File.open(path, "w") { |file| ObjectSpace.dump_all(output: file) }
    puts Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
  else
    puts longest
    longest = 0.0
  end
  $stdout.flush
end
