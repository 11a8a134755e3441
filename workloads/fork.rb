# frozen_string_literal: true

# Creates ten million short strings and forks an idle child. The parent collects
# garbage, drops every eighth string, and collects again; the pages that it writes
# are no longer shared. RSS counts shared pages twice, so compare PSS.
#
# The published case: Brightbox, "Ruby Garbage Collector CoW performance" (2012),
# measured the pages that a collection in the parent writes. The dropped strings
# are an addition: applications never stop freeing. Every fourth string is too long
# to be embedded in its object and lies in malloc's heap.
#
# CULET_SCALE multiplies the number of strings.

require_relative "shared/rest"

STRINGS = (10_000_000 * SCALE).ceil
LONG = "a string that is too long for its slot, whichever Ruby this is; " * 11
LONG_EVERY = 2_500
MIDDLING_EVERY = 4

strings = Array.new(STRINGS) do |number|
  if (number % LONG_EVERY).zero? then "#{LONG}#{number}"
  elsif (number % MIDDLING_EVERY).zero? then "middling string #{number}, "
  else "s#{number}"
  end
end
GC.start

reader, writer = IO.pipe
child = fork do
  writer.close
  reader.read
  exit!(strings.size == STRINGS ? 0 : 1)
end
reader.close

GC.start
(0...STRINGS).step(8) { |index| strings[index] = nil }
2.times { GC.start }
sleep(1.0 * [SCALE, 1].min)
writer.close
_, status = Process.wait2(child)
abort("fork: the child ended with #{status}") unless status.success?
Rest.call
