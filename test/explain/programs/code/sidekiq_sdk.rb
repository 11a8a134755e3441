# frozen_string_literal: true

# says: jobs that use little of a library
# shape: Sidekiq, threaded
# code: 20
# loads: unused
require_relative "../../load"
Load.sidekiq("MailJob", every: 0.2)

require "sidekiq"
require_relative "../../large_sdk"
LargeSdk.load(24_000) # HERE

class MailJob
  include Sidekiq::Job

  def perform(number) = LargeSdk.call(number % 3)
end
