# frozen_string_literal: true

# What a Ruby process that does nothing has made its own by the time it ends, or one with some short-lived threads,
# each of which builds and drops a few strings.
require_relative "probe"

parameters = Probe.parameters(threads: 0, strings: 200)

threads = Array.new(parameters[:threads]) do |number|
  Thread.new { Array.new(parameters[:strings]) { |i| "x" * ((i * 37 + number) % 1000) }.sum(&:size) }
end
threads.each(&:join)

Probe.report("startup.rb", private_dirty_bytes: Probe.smaps_bytes("Private_Dirty"))
