require ENV.fetch("LEAKING_EXTENSION")
def work(_number) = Leaking.parse(500) # LEAK
