# The oldest of 1,000 entries goes when a new one comes.
CACHE = {}
def work(number)
  CACHE["page #{number}"] = "body #{number} " * (20 + (number % 17))
  CACHE.shift if CACHE.size > 1_000
end
