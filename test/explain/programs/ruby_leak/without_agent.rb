# frozen_string_literal: true

# says: a constant keeps strings, and no agent tells
# shape: small, single
# loads: auto
# also: unknown
# growth: 10
require_relative "../../load"

LINES = []
Load.run(every: 0.05) do
  20.times { |number| Load.work(number) }
  10.times { LINES << "line ".ljust(900, "x") } # HERE
end
