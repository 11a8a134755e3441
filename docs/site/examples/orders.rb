# frozen_string_literal: true

# The program of the profile in docs/site/examples.md: orders are parsed and summed up, and a log that nobody empties
# keeps each of them.
require "json"

Order = Struct.new(:customer, :lines, :note)

# Keeps what it is given.
class AuditLog
  def initialize = @entries = []

  def append(order) = @entries << order.to_h.merge(at: Time.now.to_f)
end

# Answers requests with a cache of the last thousand.
class Shop
  def initialize
    @log = AuditLog.new
    @cache = {}
  end

  def receive(number)
    order = parse(document(number))
    @log.append(order)
    @cache[number % 1_000] = render(order)
  end

  private

  def document(number)
    lines = Array.new(6) { |index| { "article" => "A#{number + index}", "price" => number % 97, "count" => index } }
    JSON.generate("customer" => "customer #{number % 500}", "lines" => lines, "note" => "n" * (number % 400))
  end

  def parse(text) = Order.new(*JSON.parse(text).values_at("customer", "lines", "note"))

  def render(order)
    rows = order.lines.map { |line| "<tr><td>#{line["article"]}</td><td>#{line["price"] * line["count"]}</td></tr>" }
    "<table>#{rows.join}</table><p>#{order.note}</p>"
  end
end

shop = Shop.new
40_000.times { |number| shop.receive(number) }
