# frozen_string_literal: true

# says: each request starts a thread that waits for what never comes
# shape: small, threaded
# growth: 12
require_relative "../../load"

NEVER = Queue.new
Load.run(every: 0.4) do
  Thread.new do
    rows = Array.new(100) { |number| "row #{number} ".ljust(900, "x") } # HERE
    NEVER.pop
    rows.clear
  end
end
