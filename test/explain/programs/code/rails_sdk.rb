# frozen_string_literal: true

# says: an application of Rails that loads a library at its boot
# shape: Rails in Puma, threaded
# code: 20
# loads: unused
require_relative "../../load"
Load.client(%w[/orders], every: 0.1)
require_relative "../../rails_application"

require_relative "../../large_sdk"
LargeSdk.load(24_000) # HERE

class PagesController < ActionController::Base
  def orders = render(plain: LargeSdk.call(1).to_s)
end
Load.puma(Shop)
