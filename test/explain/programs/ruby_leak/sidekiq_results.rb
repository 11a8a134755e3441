# frozen_string_literal: true

# says: jobs keep their results in a class variable
# shape: Sidekiq, threaded
# growth: 15
require_relative "../../load"
Load.sidekiq("ReportJob", every: 0.1)

require "sidekiq"

class ReportJob
  include Sidekiq::Job

  @results = []
  class << self
    attr_reader :results
  end

  def perform(number)
    rows = Array.new(30) { |row| "row #{row} of report #{number} ".ljust(900, "x") }
    self.class.results << rows # HERE
  end
end
