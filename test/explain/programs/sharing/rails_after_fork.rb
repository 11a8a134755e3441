# frozen_string_literal: true

# says: workers load the catalogue after the fork
# shape: Rails in Puma, forked
# unshared: 30
require_relative "../../load"
Load.client(%w[/orders], every: 0.05)
require_relative "../../rails_application"

class PagesController < ActionController::Base
  def orders = render(plain: Load.work(1))
end
Load.puma(Shop, workers: 3, threads: 2) do |settings|
  settings.before_worker_boot { Catalogue = Load.texts(40) } # HERE
end
