MAILBOX = Queue.new
WORKER = Thread.new do
  kept = []
  loop { kept << (MAILBOX.pop.to_s * 30) } # LEAK
end
def work(number)
  MAILBOX << "message #{number}"
  Thread.pass if number % 50 == 0
end
