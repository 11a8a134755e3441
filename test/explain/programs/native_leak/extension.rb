# frozen_string_literal: true

# says: an extension never frees what it parses
# shape: small, single
# growth: 20
require_relative "../../load"

Load.leaking
Load.run(every: 0.05) do
  20.times { |number| Load.work(number) }
  16.times { Leaking.parse(1_000) } # HERE
end
