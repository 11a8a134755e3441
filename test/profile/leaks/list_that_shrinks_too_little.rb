ORDERS = []
def work(number)
  ORDERS << [number, "order #{number} " * 60] # LEAK
  ORDERS.shift(10) if number % 20 == 19
end
