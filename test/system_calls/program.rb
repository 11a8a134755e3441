# frozen_string_literal: true

# A program with each part of culet that production loads: culet/auto, the profile, the limit, the black box, the metrics,
# the agent and the question for unused code; the environment sets what they need. It works in a process and in a forked
# child, prints a line, and ends with "done" when its standard input ends.
require "culet/unused"
require "culet/auto"
require "culet/profile"
require "culet/limit"
require "culet/metrics"
require "culet/agent"
require "net/http"

Culet::Profile.start(sample_bytes: 64 << 10)
Culet::Metrics.start

# Threads, blocks of all sizes, collections and trims.
def work
  strings = Array.new(4) { |n| Thread.new { Array.new(10_000) { |i| "x" * ((n * 977) + (i % 3_000)) } } }.flat_map(&:value)
  Culet::Profile.label(request: "work") { strings.concat(Array.new(10) { "y" * 3_000_000 }) }
  kept = strings.each_slice(50).map(&:first)
  strings.clear
  2.times { GC.start }
  Culet.trim
  kept
end

kept = work
Process.wait(fork { work && exit!(0) })
raise "the child failed: #{$?}" unless $?.success?
raise "no metrics" unless Net::HTTP.get(URI("http://127.0.0.1:#{ENV.fetch("CULET_METRICS")}/metrics")).include?("culet_")
raise "no sites" if Culet::Profile.report["sites"].empty?

puts "up #{Process.pid}"
$stdout.flush
$stdin.read
puts "done #{kept.size}"
