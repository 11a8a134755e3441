# frozen_string_literal: true

# says: a preloaded library that no worker calls
# shape: small, forked
# code: 20
# loads: unused
require_relative "../../load"

require_relative "../../large_sdk"
LargeSdk.load(24_000) # HERE
Load.workers(2) do |number|
  Load.repeat(every: 0.1) { Load.work(number) }
end
