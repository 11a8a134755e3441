# frozen_string_literal: true

# says: workers that read what they share
# shape: small, forked
require_relative "../../load"

TEXTS = Load.texts(40).each(&:freeze)
4.times { GC.start }
Load.workers(3) do |number|
  sum = 0
  Load.repeat(every: 0.1) { sum = TEXTS.each_slice(100).sum { |texts| texts.first.bytesize } + Load.work(number + sum).size }
end
