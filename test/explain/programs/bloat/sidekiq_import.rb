# frozen_string_literal: true

# says: a job loads a whole file at once, every ten seconds
# shape: Sidekiq, threaded
# peak: 60
require_relative "../../load"
Load.sidekiq("ImportJob", every: 0.1)

require "sidekiq"

class ImportJob
  include Sidekiq::Job

  def perform(number)
    return Load.work(number) unless (number % 100) == 1

    rows = Load.texts(80) # HERE
    sleep(2)
    rows.clear
    GC.start
  end
end
