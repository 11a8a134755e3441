# frozen_string_literal: true

# says: the boot reads a large file into objects, of which few remain
# shape: Rails in Puma, threaded
# free_slots: 40
require_relative "../../load"
Load.client(%w[/orders], every: 0.1)
require_relative "../../rails_application"

class PagesController < ActionController::Base
  def orders = render(plain: Load.work(1))
end

objects = Array.new(1_500_000) { Object.new }
SETTINGS = objects.each_slice(300).map(&:first) # HERE
objects.clear
4.times { GC.start }
Load.puma(Shop)
