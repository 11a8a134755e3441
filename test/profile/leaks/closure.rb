CALLBACKS = []
def work(number)
  body = "body #{number} " * 40 # LEAK
  CALLBACKS << -> { body.size }
end
