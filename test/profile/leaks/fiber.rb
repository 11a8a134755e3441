FIBERS = []
def work(number)
  return if number % 20 != 0
  fiber = Fiber.new do
    text = "fiber #{number} " * 900 # LEAK
    Fiber.yield
    text
  end
  fiber.resume
  FIBERS << fiber if number % 20 == 0
end
