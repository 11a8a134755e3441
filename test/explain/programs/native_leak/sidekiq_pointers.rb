# frozen_string_literal: true

# says: pointers without a function that frees them
# shape: Sidekiq, threaded
# growth: 15
require_relative "../../load"
Load.sidekiq("ScanJob", every: 0.1)

require "fiddle"
require "sidekiq"

class ScanJob
  include Sidekiq::Job

  def perform(number)
    25.times { Fiddle::Pointer.malloc(1_000)[0, 4] = [number].pack("L") } # HERE
  end
end
