# Each request adds a subscriber whose block keeps the controller.
module Notifications
  @subscribers = []
  def self.subscribe(&block) = @subscribers << block
end
class OrdersController
  def initialize(number) = @params = { id: number, body: "order #{number} " * 30 } # LEAK

  def index = Notifications.subscribe { @params.size }
end
def work(number) = OrdersController.new(number).index
