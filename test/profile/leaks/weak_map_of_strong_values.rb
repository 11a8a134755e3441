# The value refers to the key, through the list.
OBJECTS = []
def work(number)
  OBJECTS << [number, ("value #{number} " * 30).dup] # LEAK
  OBJECTS.shift(10) if number % 20 == 19
end
