# frozen_string_literal: true

# says: an application of Rails in use
# shape: Rails in Puma, forked
require_relative "../../load"
Load.client(%w[/orders /all], every: 0.05)
require_relative "../../rails_application"

class PagesController < ActionController::Base
  def orders = render(plain: Load.work(1))
  def all = render(json: Array.new(50) { |id| { id: id, text: Load.work(id) } })
end
Load.puma(Shop, workers: 2, threads: 3)
