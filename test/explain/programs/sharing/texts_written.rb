# frozen_string_literal: true

# says: workers append to every text that they inherited
# shape: small, forked
# unshared: 30
require_relative "../../load"

TEXTS = Load.texts(35)
Load.workers(3) do |number|
  TEXTS.each { |text| text << number.to_s } # HERE
  Load.repeat(every: 0.1) { Load.work(number) }
end
