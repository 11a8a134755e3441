# frozen_string_literal: true

# says: workers subscribe to an event in every request
# shape: small, forked
# growth: 12
require_relative "../../load"

class Bus
  HANDLERS = []
  def self.on(&handler) = HANDLERS << handler
end

def serve(number)
  body = "answer #{number} ".ljust(1_500, "x")
  Bus.on { body.size } # HERE
end

Load.workers(2) do
  number = 0
  Load.repeat(every: 0.05) do
    10.times { Load.work(number += 1) }
    5.times { serve(number) }
  end
end
