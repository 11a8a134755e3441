$sessions = {}
def work(number) = $sessions["session #{number}"] = { user: number, cart: Array.new(20) { |at| "item #{number * at}" } } # LEAK
