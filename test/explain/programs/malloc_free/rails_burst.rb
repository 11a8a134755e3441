# frozen_string_literal: true

# says: one action that was called once has left holes
# shape: Rails in Puma, threaded
# free: 60
# elsewhere: none
require_relative "../../load"
Load.client(%w[/orders], every: 0.1, before: %w[/all])
require_relative "../../rails_application"

class PagesController < ActionController::Base
  KEPT = []
  def orders = render(plain: Load.work(1))

  def all
    texts = Load.texts(120)
    KEPT.concat(texts.each_slice(40).map(&:first)) # HERE
    texts.clear
    4.times { GC.start }
    render plain: "all"
  end
end
Load.puma(Shop, threads: 8)
