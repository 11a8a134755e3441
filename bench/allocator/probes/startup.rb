# frozen_string_literal: true

# Private_Dirty of a Ruby process at its end: idle, or with short-lived threads that build and drop a few strings.
require_relative "probe"

parameters = Probe.parameters(threads: 0, strings: 200)

threads = Array.new(parameters[:threads]) do |number|
  Thread.new { Array.new(parameters[:strings]) { |i| "x" * ((i * 37 + number) % 1000) }.sum(&:size) }
end
threads.each(&:join)

Probe.report("startup.rb", private_dirty_bytes: Probe.smaps_bytes("Private_Dirty"))
