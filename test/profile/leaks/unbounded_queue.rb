JOBS = Queue.new
def work(number) = JOBS << { id: number, payload: "payload #{number} " * 20 } # LEAK
