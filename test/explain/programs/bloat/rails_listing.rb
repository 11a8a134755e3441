# frozen_string_literal: true

# says: an action renders all records without pages
# shape: Rails in Puma, threaded
# peak: 50
require_relative "../../load"
Load.client(%w[/all] + (%w[/orders] * 120), every: 0.08, before: %w[/all])
require_relative "../../rails_application"

class PagesController < ActionController::Base
  def orders = render(plain: Load.work(1))

  def all
    rows = Load.texts(70) # HERE
    sleep(1.5)
    render plain: rows.first
    rows.clear
    GC.start
  end
end
Load.puma(Shop)
