# Entries are kept until a batch is written, many times in a look's distance.
BATCH_BUFFER = []
def work(number)
  BATCH_BUFFER << "entry #{number} " * 20
  BATCH_BUFFER.clear if BATCH_BUFFER.size == 300
end
