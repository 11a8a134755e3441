# frozen_string_literal: true

# Private_Dirty of a forked Ruby child that drops one in eight of its parent's strings and collects garbage.
require_relative "probe"

# Longer than any string that Ruby 3.2 and later keep in a slot of their own heap (640 bytes).
parameters = Probe.parameters(strings: 300_000, bytes: 700, one_in: 8)

strings = Array.new(parameters[:strings]) { |i| "#{i} ".ljust(parameters[:bytes], "x") }
4.times { GC.start } # makes all objects old, so that the child's collection promotes none

child = fork do
  before = Probe.smaps_bytes("Private_Dirty")
  (0...strings.size).step(parameters[:one_in]) { |i| strings[i] = nil }
  GC.start
  Probe.report("cow.rb", private_dirty_growth_bytes: Probe.smaps_bytes("Private_Dirty") - before)
end
Process.wait(child)
exit Process.last_status.success?
