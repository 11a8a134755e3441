# frozen_string_literal: true

# says: every request subscribes a block that keeps its controller
# shape: Rails in Puma, forked
# growth: 12
require_relative "../../load"
Load.client(%w[/orders], every: 0.05)
require_relative "../../rails_application"

class PagesController < ActionController::Base
  def orders
    @rows = Array.new(20) { |row| "order #{row} ".ljust(900, "x") }
    ActiveSupport::Notifications.subscribe("export.shop") { @rows.size } # HERE
    render plain: "ordered"
  end
end
Load.puma(Shop, workers: 2, threads: 2)
