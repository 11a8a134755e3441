# frozen_string_literal: true

# says: an object of an application, which no constant leads to, keeps the prices of each customer
# shape: Rack in Puma, threaded
# growth: 12
require_relative "../../load"
Load.client(%w[/prices], every: 0.04)
require "bundler/setup"

class Prices
  def initialize = @by_customer = {}
  def of(customer) = @by_customer[customer] ||= Array.new(60) { |number| { sku: "sku-#{number}", cents: number * 100.5 } } # HERE
end

prices = Prices.new
customers = 0
application = lambda do |_|
  Load.work(customers += 1)
  [200, { "content-type" => "text/plain" }, [prices.of(customers).size.to_s]]
end
Load.puma(application)
