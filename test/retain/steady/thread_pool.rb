# Threads that keep the last request each, and come and go.
POOL = Queue.new
WORKERS = Array.new(4) { Thread.new { loop { Thread.current[:last] = POOL.pop } } }
def work(number)
  POOL << { number: number, text: "request #{number} " * (10 + (number % 40)) }
  Thread.new { Thread.current[:scratch] = "scratch #{number} " * 50 }.join if (number % 50).zero?
end
