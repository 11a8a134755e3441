# frozen_string_literal: true

# says: jobs that leave nothing
# shape: Sidekiq, threaded
require_relative "../../load"
Load.sidekiq("SteadyJob", every: 0.05)

require "sidekiq"

class SteadyJob
  include Sidekiq::Job

  def perform(number) = 20.times { |step| Load.work(number + step) }
end
