# frozen_string_literal: true

# The classic copy-on-write experiment: creates short strings, forks a child, and collects garbage twice. `culet cow
# experiment` runs the script and measures both processes after each step.
#
# The protocol, for a script in any language:
#   CULET_COW_STRINGS  number of strings
#   CULET_COW_VARIANT  which process collects: parent; child; frees: the child, after dropping every eighth string;
#                      mutates: the child, after changing every eighth string
#   CULET_COW_WARM     1: warm up before the fork, as the language provides
# The script prints "phase NAME [NUMBER]" after each step and waits for a line: built; forked, with the child's process
# number; first and second, with the seconds of the collection. At the end of its input it ends, with its child.
#
# Every fourth string is too long for the smallest slot; one in 2,500 has about 700 bytes.

STRINGS = Integer(ENV.fetch("CULET_COW_STRINGS"))
VARIANT = ENV.fetch("CULET_COW_VARIANT", "parent")
LONG = "a string that is too long for its slot, whichever Ruby this is; " * 11

def phase(name, figure = nil)
  puts ["phase", name, *figure].join(" ")
  $stdout.flush
  $stdin.gets || exit!
end

def warm
  return Process.warmup if Process.respond_to?(:warmup)

  4.times { GC.start }
  GC.compact if GC.respond_to?(:compact)
end

def collect
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  GC.start
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
end

def prepare(strings)
  case VARIANT
  when "frees" then (0...STRINGS).step(8) { |index| strings[index] = nil }
  when "mutates" then (0...STRINGS).step(8) { |index| strings[index] << "!" }
  end
end

strings = Array.new(STRINGS) do |number|
  if (number % 2_500).zero? then "#{LONG}#{number}"
  elsif (number % 4).zero? then "middling string #{number}, "
  else "s#{number}"
  end
end
GC.start
warm if ENV["CULET_COW_WARM"] == "1"
phase("built")

orders, order = IO.pipe
answers, answer = IO.pipe
child = fork do
  [order, answers].each(&:close)
  prepare(strings)
  2.times { answer.puts(collect) if orders.gets }
  orders.read
  exit!
end
[orders, answer].each(&:close)
phase("forked", child)
%w[first second].each do |name|
  next phase(name, collect) if VARIANT == "parent"

  order.puts("collect")
  phase(name, answers.gets.to_f)
end
order.close
Process.wait(child)
