# frozen_string_literal: true

# says: a Rails application calls an extension that leaks
# shape: Rails in Puma, forked
# growth: 12
require_relative "../../load"
Load.client(%w[/orders], every: 0.05)
require_relative "../../rails_application"

Load.leaking

class PagesController < ActionController::Base
  def orders
    20.times { Leaking.parse(1_000) } # HERE
    render plain: "parsed"
  end
end
Load.puma(Shop, workers: 2, threads: 2)
