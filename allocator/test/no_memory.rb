# frozen_string_literal: true

# Ruby out of memory, with the library preloaded: NoMemoryError is raised, can be rescued, and the program
# goes on. Run under LD_PRELOAD; prints "ok" and "not ok" lines. (When even the smallest blocks are used up
# Ruby cannot make the error, under any allocator, so the strings are long.)

def report(name)
  problem = yield
  puts(problem ? "not ok #{name}: #{problem}" : "ok #{name}")
  problem.nil?
end

# Takes memory until there is none. Returns the error, or nil if there was none within the limit.
def exhaust(limit)
  held = []
  taken = 0
  while taken <= limit
    held << yield
    taken += held.last.bytesize
  end
  nil
rescue NoMemoryError => e
  held = nil
  e
end

preloaded = File.read("/proc/self/maps").include?("libculet.so")
room = 256 << 20
page = Integer(`getconf PAGESIZE`)
Process.setrlimit(:AS, (File.read("/proc/self/statm").to_i * page) + room)

passed = [
  report("the_library_is_preloaded") { "libculet.so is not mapped" unless preloaded },
  *{ "huge" => 4 << 20, "run" => 200_000 }.map do |name, bytes|
    report("no_memory_error_is_raised_and_rescued_#{name}") do
      error = exhaust(2 * room) { "x" * bytes }
      GC.start
      again = "y" * (room / 4)
      if error.nil?
        "#{2 * room} bytes were given within #{room}"
      elsif again.count("y") != room / 4
        "a string made afterwards is damaged"
      end
    end
  end,
  report("the_program_goes_on") do
    sum = Array.new(10_000) { |i| i.to_s * 3 }.map(&:size).sum
    "the sum is #{sum}" unless sum == 116_670
  end
]
exit(passed.all? ? 0 : 1)
