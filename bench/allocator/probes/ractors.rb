# frozen_string_literal: true

# Ractors that build strings and arrays at the same time, each keeping the last few thousand.
require_relative "probe"

parameters = Probe.parameters(ractors: 2, keep: 5_000, operations: 400_000)
Warning[:experimental] = false

wall, cpu = Probe.clocks
share = parameters[:operations] / parameters[:ractors]
ractors = Array.new(parameters[:ractors]) do |number|
  Ractor.new(number, share, parameters[:keep]) do |seed, operations, keep|
    random = Random.new(seed)
    kept = Array.new(keep)
    operations.times do |i|
      size = random.rand(40..1_000)
      kept[random.rand(keep)] = i.odd? ? "x" * size : Array.new(size / 8, i)
    end
    kept.size
  end
end
ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
wall, cpu = Probe.clocks.zip([wall, cpu]).map { |now, before| now - before }

Probe.report("ractors.rb", operations_per_second: parameters[:operations] / wall,
                           cpu_nanoseconds_per_operation: cpu * 1e9 / parameters[:operations],
                           peak_rss_bytes: Probe.peak_rss_bytes)
