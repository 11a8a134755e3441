# frozen_string_literal: true

# What the servers serve in the tests: paths that make garbage, collect it and tell what was given back.

require "etc"
require "json"

# Strings that malloc serves, in the arena of a thread that ends; one of some hundreds stays, so that what is freed lies
# between them.
class Garbage
  STRINGS = 50_000
  BYTES = 1_000 # too long to be embedded in an object, on any Ruby
  KEPT_EVERY = 250
  KEPT = []

  # @return [Integer] bytes made
  def self.make
    Thread.new do
      texts = Array.new(STRINGS) { "x" * BYTES }
      KEPT.replace(texts.each_slice(KEPT_EVERY).map(&:first))
    end.join
    STRINGS * BYTES
  end
end

# Processes that asked for "/warm", each as often as it did, in the memory that forked workers inherit.
WARMED = []

def figures
  resident = File.read("/proc/self/statm").split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE)
  { pid: Process.pid, parent: Process.ppid, rss_bytes: resident, compactions: GC.stat(:compact_count),
    warmed: WARMED, trim: defined?(Culet) ? Culet.trim_stats : nil }
end

run(lambda do |environment|
  body = case environment["PATH_INFO"]
         when "/garbage" then Garbage.make.to_s
         when "/collect" then GC.start.to_s
         when "/fails" then raise "on purpose"
         when "/warm" then (WARMED << Process.pid).to_s
         else JSON.generate(figures)
         end
  [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
end)
