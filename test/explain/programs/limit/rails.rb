# frozen_string_literal: true

# says: an application of Rails with a catalogue close to its limit
# shape: Rails in Puma, threaded
# allocators: glibc, culet
# loads: agent limit
# env: CULET_LIMIT=175MB
require_relative "../../load"
Load.client(%w[/orders], every: 0.1)
require_relative "../../rails_application"

class PagesController < ActionController::Base
  CATALOGUE = Load.texts(105) # HERE
  def orders = render(plain: Load.work(1))
end
4.times { GC.start }
Load.puma(Shop)
