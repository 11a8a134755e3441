# frozen_string_literal: true

# says: workers compact the heap that they inherited
# shape: small, forked
# unshared: 25
require_relative "../../load"

OBJECTS = Array.new(900_000) { |number| number.even? ? Object.new : [number] }
OBJECTS.reject!.with_index { |_, at| (at % 3).zero? }
Load.workers(3) do |number|
  GC.compact # HERE
  Load.repeat(every: 0.1) { Load.work(number) }
end
