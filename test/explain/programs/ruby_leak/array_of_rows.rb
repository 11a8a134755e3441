# frozen_string_literal: true

# says: a constant keeps the rows of every import
# shape: small, single
# growth: 20
require_relative "../../load"

ROWS = []
Load.run(every: 0.05) do
  30.times { |number| Load.work(number) }
  16.times { |number| ROWS << { id: number, text: "row #{number} ".ljust(800, "x") } } # HERE
end
