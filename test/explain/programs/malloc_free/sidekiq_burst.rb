# frozen_string_literal: true

# says: a nightly job is over
# shape: Sidekiq, threaded
# free: 60
# elsewhere: none
require_relative "../../load"
Load.sidekiq("NightlyJob", every: 0.2, first: true)

require "sidekiq"

class NightlyJob
  include Sidekiq::Job

  KEPT = []

  def perform(number)
    return Load.work(number) if number > 1

    texts = Load.texts(120)
    KEPT.concat(texts.each_slice(40).map(&:first)) # HERE
    texts.clear
    4.times { GC.start }
    Load.first_done
  end
end
