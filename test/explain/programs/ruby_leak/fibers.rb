# frozen_string_literal: true

# says: generators that are kept after their first value
# shape: small, single
# growth: 12
require_relative "../../load"

OPEN = []
Load.run(every: 0.4) do
  rows = Enumerator.new { |all| Array.new(100) { |number| "row #{number} ".ljust(900, "x") }.each { |row| all << row } } # HERE
  rows.next
  OPEN << rows
end
