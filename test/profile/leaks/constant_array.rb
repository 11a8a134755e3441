KEPT = []
def work(number) = KEPT << "order #{number} " * 20 # LEAK
