# frozen_string_literal: true

# says: a client library of which three methods are called
# shape: small, single
# code: 20
# loads: unused
require_relative "../../load"

require_relative "../../large_sdk"
LargeSdk.load(24_000) # HERE
Load.run(every: 0.1) { 3.times { |number| LargeSdk.call(number) } }
